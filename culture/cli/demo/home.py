"""A home folder that is there for one demonstration: its own environment, and whatever runs in it."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from culture.config import paths
from culture.protocol.vocabulary import Environment

_KEPT = ("PATH", "LANG", "LC_ALL", "TERM", "TMPDIR", "PYTHONPATH", "NO_COLOR")
_PROC = Path("/proc")
_LOOK_AGAIN = 0.05


@contextmanager
def temporary_home() -> Iterator[Path]:
    """A new folder that everything of ours takes for its home until the end, when it is removed with all it holds."""
    folder = Path(tempfile.mkdtemp(prefix="culture-demo-"))
    before = dict(os.environ)
    try:
        os.environ.clear()
        os.environ.update({name: before[name] for name in _KEPT if name in before})
        runtime = paths.private_directory(folder / "run")
        os.environ.update({Environment.HOME: str(folder), "HOME": str(folder), "XDG_RUNTIME_DIR": str(runtime)})
        yield folder
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


def processes_of(folder: Path) -> list[int]:
    """The processes that have this folder as their home, the caller not among them."""
    wanted = f"{Environment.HOME}={folder}".encode()
    return [pid for pid in _all_pids() if pid != os.getpid() and wanted in _environment(pid)]


def end_those_of(folder: Path, grace: float) -> int:
    """End what still runs there, by force after the grace; how many had to be forced."""
    _signal(processes_of(folder), signal.SIGTERM)
    deadline = time.monotonic() + grace
    while (left := processes_of(folder)) and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN)
    forced = len(left)
    while left:
        _signal(left, signal.SIGKILL)
        time.sleep(_LOOK_AGAIN)
        left = processes_of(folder)
    return forced


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _all_pids() -> Iterator[int]:
    us = os.getuid()
    with os.scandir(_PROC) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.name.isdecimal() and entry.stat().st_uid == us:
                    yield int(entry.name)


def _environment(pid: int) -> list[bytes]:
    """What a process was started with; nothing of one that is gone."""
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []
