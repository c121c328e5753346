"""Runs pip and shows on one line how far it is; the standard library alone, as nothing is installed yet.

``python3 tools/installing.py .venv/bin/python -m pip install …``
"""

import re
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator

_FETCHED = re.compile(r"Collecting ([A-Za-z0-9._-]+)")
_LAST_LINES = 15
_CLEAR = "\r\x1b[K"
_BROKEN_OFF = "The installation was broken off; type the same command again to go on."


def steps(lines: Iterable[str]) -> Iterator[str]:
    """What a person likes to know of what pip says."""
    fetched = 0
    for line in lines:
        found = _FETCHED.match(line)
        if found:
            fetched += 1
            yield f"fetching {found[1]} ({fetched})"
        elif line.startswith("Installing collected packages:"):
            yield f"installing {line.count(',') + 1} packages"


def main(command: list[str]) -> int:
    """Run it; where it fails, what it said last is shown. Its exit code."""
    last: deque[str] = deque(maxlen=_LAST_LINES)
    is_terminal = sys.stdout.isatty()

    def heard(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            last.append(line)
            yield line

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        assert running.stdout is not None
        try:
            for step in steps(heard(running.stdout)):
                if is_terminal:
                    print(f"{_CLEAR}  {step}", end="", flush=True)
                elif step.startswith("installing"):
                    print(f"  {step}", flush=True)
        except KeyboardInterrupt:
            return _break_off(running)
    if is_terminal:
        print(_CLEAR, end="", flush=True)
    if running.returncode:
        print("".join(last), end="", file=sys.stderr)
    return running.returncode


def _break_off(running: "subprocess.Popen[str]") -> int:
    """End it, though a terminal tells it as well, and say how to go on; the exit code of what Ctrl-C ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running.terminate()
    running.wait()
    print(f"{_CLEAR if sys.stdout.isatty() else ''}{_BROKEN_OFF}", file=sys.stderr, flush=True)
    return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
