"""The temporary home folder of a demo, and the processes that run in it.

``python -m culture.cli.demo.home FOLDER`` is the caretaker: when its standard input closes because the demo was
killed, it ends the demo's processes and deletes the folder.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from culture.lib.files import private_directory
from culture.lib.process.orphans import carrying, end_all_blocking
from culture.protocol.vocabulary import Environment

_KEPT = ("PATH", "LANG", "LC_ALL", "TERM", "TMPDIR", "PYTHONPATH", "NO_COLOR")


@contextmanager
def temporary_home() -> Iterator[Path]:
    """Make a new folder culture's home folder (CULTURE_HOME) in this process during the block.

    Yields the folder, which is deleted afterwards.
    """
    folder = Path(tempfile.mkdtemp(prefix="culture-demo-"))
    before = dict(os.environ)
    try:
        os.environ.clear()
        os.environ.update({name: before[name] for name in _KEPT if name in before})
        runtime = private_directory(folder / "run")
        os.environ.update({Environment.HOME: str(folder), "HOME": str(folder), "XDG_RUNTIME_DIR": str(runtime)})
        yield folder
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


def processes_of(folder: Path) -> list[int]:
    """Return the pids of other processes whose environment variable CULTURE_HOME is ``folder``."""
    return carrying(str(folder), Environment.HOME)


def end_those_of(folder: Path, grace: float) -> None:
    """End the processes whose environment variable CULTURE_HOME is ``folder``.

    ``grace``: seconds after which those that still run are killed.
    """
    end_all_blocking(str(folder), Environment.HOME, grace)


_GRACE = 5.0


def main() -> None:
    """Wait until standard input closes, then end the demo's processes and delete its folder.

    This is the caretaker, a process that runs beside the demo.
    """
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
