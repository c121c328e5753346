"""Finds orphan processes by their environment or their session, and ends them.

What an agent starts may leave its parent, its folder, its process group and its session. What it cannot leave without
wanting to is the environment it was started with, which every child inherits and which /proc shows unchanged: so each
agent's program gets a random token in ``CULTURE_TOKEN``, and whatever carries it belongs to that agent. Neither the
name of a program nor its folder counts: the same program of somebody else, in the same folder, is left alone.
"""

import asyncio
import logging
import os
import secrets
import signal
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from culture.lib.process import handle as handles
from culture.lib.process.handle import end_in_order, pinned
from culture.protocol.vocabulary import Environment

log = logging.getLogger(__name__)

GRACE = 3.0
"""Seconds between SIGTERM and SIGKILL."""
FORCE = 10.0
"""Seconds after which processes that fork faster than they are ended are given up."""
CLEAN_LOOKS = 2  # a process that is becoming another program shows no environment for a moment
BETWEEN_LOOKS = 0.005
SESSION_FORCE = 5.0
_LOOK_AGAIN = 0.05

_PROC = Path("/proc")
_SESSION = 3  # behind the name: state, parent, group, session
_ZOMBIE = b"Z"


def new_token() -> str:
    """Return a random token to mark processes with, by their environment."""
    return secrets.token_hex(16)


def tokened(environment: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return the environment with a token that marks processes, and the token.

    It is the token in the environment if there is one, else a new one.
    """
    token = environment.get(Environment.TOKEN) or new_token()
    return {**environment, Environment.TOKEN: token}, token


def carrying(value: str, variable: str = Environment.TOKEN) -> list[int]:
    """Return the pids of this user's processes in whose environment ``variable`` has this value.

    This process is not among them.
    """
    us, mark = os.getpid(), _mark(variable, value)
    return [pid for pid in _own_pids() if pid != us and _has(pid, mark)]


async def end_all(token: str, grace: float = GRACE, spare: Collection[int] = ()) -> int:
    """End every process with this token in its environment, and return how many were ended.

    Processes get SIGTERM, and SIGKILL after ``grace`` seconds; those with a pid in ``spare`` are left alone. Searches
    until nothing is found twice in a row, since a process may start another when it is ended.
    """
    ended, clean, begun = 0, 0, time.monotonic()
    while clean < CLEAN_LOOKS:
        left = begun + grace - time.monotonic()
        if left < -FORCE:
            log.error("processes carrying our token do not end: %s", carrying(token))
            break
        found = [pid for pid in carrying(token) if pid not in spare]
        ends = sum(await asyncio.gather(*(_end_carrier(pid, token, max(left, 0.0)) for pid in found)))
        ended += ends
        clean = 0 if ends else clean + 1
        await asyncio.sleep(BETWEEN_LOOKS)
    return ended


def end_all_blocking(value: str, variable: str, grace: float) -> None:
    """End every process in whose environment ``variable`` has this value.

    Block until all have ended. They get SIGTERM, and SIGKILL after ``grace`` seconds.
    """
    deadline = time.monotonic() + grace
    _signal_carriers(value, variable, signal.SIGTERM)
    while carrying(value, variable) and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN)
    while carrying(value, variable):
        _signal_carriers(value, variable, signal.SIGKILL)
        time.sleep(_LOOK_AGAIN)


@dataclass(frozen=True, slots=True)
class SessionProcess:
    """A living process that belongs to a process session: its pid and command line."""

    pid: int
    command: str


def of_sessions(leaders: Collection[int]) -> list[SessionProcess]:
    """Return the living processes in these process sessions, without this process itself.

    ``leaders``: the ids of the sessions, which are the pids of the processes that began them.
    """
    ours = os.getpid()
    return [SessionProcess(pid, _command(pid)) for pid in _all_pids() if pid != ours and _session(pid) in leaders]


def end_sessions(leaders: Collection[int], grace: float = GRACE) -> tuple[list[SessionProcess], list[SessionProcess]]:
    """End the processes in these process sessions: SIGTERM, after ``grace`` seconds SIGKILL.

    ``leaders``: the ids of the sessions. Returns the processes that were found, and those that still live.
    """
    found = of_sessions(leaders)
    for number, timeout in ((signal.SIGTERM, grace), (signal.SIGKILL, SESSION_FORCE)):
        for left in of_sessions(leaders):
            handles.end(left.pid, lambda pid=left.pid: _session(pid) in leaders, timeout, number)  # type: ignore[misc]
    return found, of_sessions(leaders)


async def _end_carrier(pid: int, token: str, grace: float) -> bool:
    with pinned(pid) as handle:
        if handle is None or not _has(pid, _mark(Environment.TOKEN, token)):
            return False
        return await end_in_order(handle, grace, FORCE) is not None


def _signal_carriers(value: str, variable: str, number: signal.Signals) -> None:
    mark = _mark(variable, value)
    for pid in carrying(value, variable):
        with pinned(pid) as handle:
            if handle is not None and _has(pid, mark):
                handles.send(handle, number)


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]


def _own_pids() -> Iterator[int]:
    owner = os.getuid()
    with os.scandir(_PROC) as entries:
        for entry in entries:
            try:
                if entry.name.isdecimal() and entry.stat().st_uid == owner:
                    yield int(entry.name)
            except FileNotFoundError:
                continue


def _mark(variable: str, value: str) -> bytes:
    return f"{variable}={value}".encode()


def _has(pid: int, mark: bytes) -> bool:
    """Return whether a process was started with ``mark`` (``NAME=value``) in its environment."""
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False
    return mark in environment.split(b"\0")


def _session(pid: int) -> int | None:
    """Return the id of the session of a living process; None if the process has exited."""
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
