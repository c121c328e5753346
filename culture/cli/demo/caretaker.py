"""Waits beside a demonstration; when that is killed, ends what it started and removes its folder.

``python -m culture.cli.demo.caretaker FOLDER``: the end of standard input is the end of the demonstration.
"""

import os
import shutil
import signal
import sys
from pathlib import Path

from culture.cli.demo.home import end_those_of

_GRACE = 5.0


def main() -> None:
    """Wait, and tidy up."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    folder = Path(sys.argv[1])
    sys.stdin.buffer.read()
    if folder.is_dir():
        end_those_of(folder, _GRACE)
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main()
