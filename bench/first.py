"""How long the first five minutes take: ``python -m bench.first``.

A clone of this repository, a home folder with nothing in it, ``make up``: seconds until the server is up, the page has
an address, the guide is there, and somebody who opened the printed link in Chromium has the guide's welcome and its
answer to a hello before them. Everything is taken away again.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
_KEPT = ("PATH", "LANG", "LC_ALL", "TERM")
_MARKS = {
    "the server is up": r"is up \(pid",
    "the page has an address": r"/login/",
    "the guide is there": r"-guide is here\.",
}
_PATIENCE = 300.0


def _environment(home: Path) -> dict[str, str]:
    """Nothing of the machine's own but how packages are found."""
    passed = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(("PIP_", "UV_"))}
    return {**passed, "HOME": str(home), "LOGNAME": "ori", "XDG_RUNTIME_DIR": str(home)}


def _seen(up: "subprocess.Popen[str]", begun: float) -> Iterator[tuple[str, float, str]]:
    """Each mark when it comes, with the line it is in."""
    assert up.stdout is not None
    waiting = dict(_MARKS)
    for line in up.stdout:
        for what in [each for each, pattern in waiting.items() if re.search(pattern, line)]:
            del waiting[what]
            yield what, time.monotonic() - begun, line
        if not waiting:
            return
    raise SystemExit(f"it ended before {', '.join(waiting)}")


def _looked(link: str, guide: str) -> Iterator[str]:
    """What somebody sees in a browser, when they see it."""
    options = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.getuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        page = browser.new_page()
        page.set_default_timeout(_PATIENCE * 1000)
        page.goto(link)
        page.get_by_role("button", name="Log in as").click()
        said = page.locator(f'.message[data-sender="{guide}"]')
        said.first.wait_for()
        yield "the page shows the guide's welcome"
        before = said.count()
        page.locator("#text").fill(f"@{guide} hello")
        page.keyboard.press("Enter")
        said.nth(before).wait_for()
        yield "the page shows the guide's answer"
        browser.close()


def measure(folder: Path) -> dict[str, float]:
    """The seconds, by what had happened."""
    clone, home = folder / "clone", folder / "home"
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    environment, begun = _environment(home), time.monotonic()
    up = subprocess.Popen(
        ["make", "up", "ARGS=--port 0"],
        cwd=clone,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    culture = [str(clone / ".venv" / "bin" / "culture")]
    times: dict[str, float] = {}
    guide = link = ""
    try:
        for what, seconds, line in _seen(up, begun):
            times[what] = seconds
            guide = found[1] if (found := re.match(r"(\S+-guide) is here", line)) else guide
            link = found[0] if (found := re.search(r"http\S+/login/\S+", line)) else link
        for what in _looked(link, guide):
            times[what] = time.monotonic() - begun
    finally:
        subprocess.run([*culture, "down"], env=environment, check=False, stdout=subprocess.DEVNULL)
        up.send_signal(signal.SIGTERM)
        up.wait(_PATIENCE)
    return times


def main() -> None:
    """Measure once, print, and write the figures where they are wanted."""
    arguments = argparse.ArgumentParser(prog="bench.first")
    arguments.add_argument("--json", type=Path, metavar="FILE")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="first-") as folder:
        times = measure(Path(folder))
    for what, seconds in times.items():
        print(f"{seconds:6.1f} s  {what}")
    if given.json is not None:
        given.json.write_text(json.dumps({what: round(seconds, 1) for what, seconds in times.items()}), "utf-8")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
