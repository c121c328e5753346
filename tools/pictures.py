"""``make pictures``: the pictures of the README, taken from the demonstration as it runs.

The terminal's is drawn from what `culture demo` really prints, the page's are what Chromium shows of it.
"""

import asyncio
import os
import pty
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from playwright.async_api import Browser, ViewportSize, async_playwright
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
_COLUMNS = 96
_PATIENCE = 120.0
_OPEN = "runs until Ctrl-C"
_CUT = re.compile(r"\n(?:\x1b\[[0-9;]*m)*3\. ")
_LINK = re.compile(r"http://[a-z0-9.]+:\d+/login/[\w-]+")
_HOME = re.compile(r"CULTURE_HOME=(\S+) XDG_RUNTIME_DIR=(\S+)")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_WEB_FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)
_ASKING = ("say", "--nick", "spark-you", "#general", "@spark-builder deploy the site")
_DESK, _PHONE = (1280, 720), (390, 620)


class Missing(Exception):
    """Something that the pictures need is not there."""


@dataclass(frozen=True)
class Shown:
    """A demonstration whose scenes are over and which goes on running."""

    printed: str
    link: str
    home: dict[str, str]


async def main() -> None:
    """Write the pictures into docs/images."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise Missing("chromium is not installed: `make debian`")
    IMAGES.mkdir(exist_ok=True)
    async with demonstration() as shown:
        (IMAGES / "terminal.svg").write_text(drawn(shown.printed), encoding="utf-8")
        await _culture(shown, *_ASKING)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            await _take(browser, shown)
            await browser.close()
    for file in sorted(IMAGES.iterdir()):
        print(f"{file.relative_to(ROOT)}  {file.stat().st_size // 1024} KiB")


@asynccontextmanager
async def demonstration() -> AsyncIterator[Shown]:
    """`culture demo` at a terminal of its own, until its scenes are over."""
    ours, its = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(_COLUMNS), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "culture", "demo", "--fast", "--keep-open"),
        cwd=ROOT,
        env=environment,
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
    )
    os.close(its)
    try:
        async with asyncio.timeout(_PATIENCE):
            yield _read(await asyncio.to_thread(_printed, ours))
    finally:
        process.send_signal(signal.SIGINT)
        await process.wait()
        os.close(ours)


def _printed(terminal: int) -> str:
    said = ""
    while _OPEN not in said or not _HOME.search(said):
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            raise Missing(f"the demonstration ended:\n{said[-2000:]}") from None
        said += piece.decode("utf-8", "replace")
    return said.replace("\r\n", "\n")


def _read(printed: str) -> Shown:
    plain = _ESCAPES.sub("", printed)
    link, home = _LINK.search(plain), _HOME.search(plain)
    if link is None or home is None:
        raise Missing(f"the demonstration showed no web page:\n{plain[:1500]}")
    return Shown(printed, link[0], {"CULTURE_HOME": home[1], "XDG_RUNTIME_DIR": home[2]})


def drawn(printed: str) -> str:
    """A terminal with the first scenes, as SVG without fonts from elsewhere."""
    shown = _LINK.sub("http://127.0.0.1:6680/login/…", _CUT.split(printed)[0].rstrip())
    console = Console(record=True, width=_COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ culture demo\n{shown}"))
    form = _WEB_FONTS.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code", "ui-monospace, DejaVu Sans Mono")
    return console.export_svg(title="culture demo", theme=MONOKAI, code_format=form, unique_id="demo")


async def _culture(shown: Shown, *words: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "culture", *words), cwd=ROOT, env={**os.environ, **shown.home}
    )
    if await process.wait():
        raise Missing(f"culture {words[0]} has failed")


async def _take(browser: Browser, shown: Shown) -> None:
    """Log in once, at a desk; the phone has the same session."""
    desk = await browser.new_context(viewport=_size(_DESK), color_scheme="light")
    page = await desk.new_page()
    await page.goto(shown.link)
    button = page.locator("main button[type=submit], form button")
    if "/login" in page.url and await button.count():
        await button.first.click()
    await page.wait_for_url(lambda url: "/login" not in url)
    root = "/".join(page.url.split("/", 3)[:3])
    state = await desk.storage_state()
    phone = await browser.new_context(
        viewport=_size(_PHONE), color_scheme="dark", device_scale_factor=2, is_mobile=True, storage_state=state
    )
    small = await phone.new_page()
    for name, place, shot in (
        ("web-agents", "/agents", page),
        ("web-mesh", "/mesh", page),
        ("web-questions", "/questions", small),
    ):
        await shot.goto(f"{root}{place}")
        await shot.wait_for_timeout(800)
        await shot.screenshot(path=IMAGES / f"{name}.png")


def _size(size: tuple[int, int]) -> ViewportSize:
    return {"width": size[0], "height": size[1]}


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except Missing as missing:
        sys.exit(f"make pictures: {missing}")
