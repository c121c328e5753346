"""Processes that outlive what they were started by: found by the session they belong to."""

import os
import signal
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from culture.config import process

_PROC = Path("/proc")
_SESSION = 3  # behind the name: state, parent, group, session
_ZOMBIE = b"Z"
GRACE = 3.0
FORCE = 5.0


@dataclass(frozen=True, slots=True)
class Process:
    """One that is there."""

    pid: int
    command: str


def of_sessions(leaders: Collection[int]) -> list[Process]:
    """The living processes of the sessions that these began, they themselves included."""
    return [Process(pid, _command(pid)) for pid, session in _sessions() if session in leaders and pid != os.getpid()]


def end(leaders: Collection[int]) -> tuple[list[Process], list[Process]]:
    """End what is left of these sessions, by force after a while: what was there, and what is there still."""
    found = of_sessions(leaders)
    for number, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, FORCE)):
        for left in of_sessions(leaders):
            _end(left.pid, leaders, number, patience)
    return found, of_sessions(leaders)


def _end(pid: int, leaders: Collection[int], number: signal.Signals, patience: float) -> None:
    process.end(pid, lambda: _session(pid) in leaders, patience, number)


def _sessions() -> Iterator[tuple[int, int]]:
    for entry in os.scandir(_PROC):
        if entry.name.isdecimal():
            session = _session(int(entry.name))
            if session is not None:
                yield int(entry.name), session


def _session(pid: int) -> int | None:
    """The session of a process that lives; None for one that is dead, reaped or not."""
    try:
        # The name of the program stands in brackets, and may have any in it.
        words = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if words[0] == _ZOMBIE else int(words[_SESSION])


def _command(pid: int) -> str:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
