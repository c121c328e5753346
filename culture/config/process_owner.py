"""Whose process it is: an agent's or a person's. The command line, the agents' sockets and the server ask here.

A daemon starts its agent with ``CULTURE_NICK`` in the environment, and every process inherits the environment it was
started with; what a program changes later in its own does not show in /proc. So a process is an agent's if it or any
process it comes from was started with that variable. A process that loses both, by a new environment and by a parent
that exits, becomes a child of the daemon, because the daemon is a subreaper (clients/shared/orphans.py), and the
daemon is known by the name of its process. What another program starts on request (cron, systemd, a terminal
multiplexer that runs already) does not descend from the agent, and cannot be told from a person's.

This is no boundary: an agent has the user id of its owner. It keeps an agent from acting as a person by accident, or
because a text told it to.
"""

import os
import time
from pathlib import Path

from culture.protocol.names import valid_nick
from culture.protocol.vocabulary import Environment

DAEMON = "culture-agent"
"""The name of a daemon's process (at most 15 bytes), as ``ps`` and /proc/<pid>/stat show it."""
SOME_AGENT = "an agent"
"""Stands for the agent's nick where only its daemon is known."""
PATIENCE = 5.0

_PROC = Path("/proc")
_DEEPEST = 4096  # generations: whoever nests deeper, or keeps moving, hides something
_WALKS = 20
_LONGEST_NICK = 128
_MARK = f"{Environment.NICK}=".encode()


class TooManyProcesses(Exception):
    """The processes of this machine could not be looked through in time."""


def own_agent() -> str | None:
    """The agent that this process belongs to; None for a person's."""
    return os.environ.get(Environment.NICK) or agent_of(os.getppid())


def agent_of(pid: int) -> str | None:
    """The agent that a process, or a process it descends from, was started for; None for a person's."""
    for _ in range(_WALKS):
        try:
            return _walk(pid)
        except _Moved:
            continue
    return SOME_AGENT


def name_of(pid: int) -> str:
    """The name of a process, at most 15 bytes; empty for one that is gone."""
    return _stat(pid)[0]


def take_daemon_name() -> None:
    """Give this process the name by which a daemon is known."""
    (_PROC / "self" / "comm").write_text(DAEMON, encoding="ascii")


def holders(inode: int, patience: float = PATIENCE) -> list[int]:
    """The processes that hold a socket open, as far as this user may look into them; a fork shares its parent's.

    Blocks: about 10 µs for each process and 2 µs for each of their open files. TooManyProcesses when time is up.
    """
    wanted, deadline, found = f"socket:[{inode}]", time.monotonic() + patience, []
    for entry in os.listdir(_PROC):
        if entry.isdecimal() and _holds(entry, wanted):
            found.append(int(entry))
        if time.monotonic() > deadline:
            raise TooManyProcesses
    return found


def _holds(pid: str, wanted: str) -> bool:
    folder = f"{_PROC}/{pid}/fd"
    try:
        return any(_target(f"{folder}/{each}") == wanted for each in os.listdir(folder))
    except OSError:
        return False


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:  # closed meanwhile
        return ""


class _Moved(Exception):
    """A process ended while we looked, and its children have another parent now."""


def _walk(pid: int) -> str | None:
    """Look at a process and those it descends from, up to the first that cannot be read."""
    child = 0
    for _ in range(_DEEPEST):
        name, parent = _stat(pid)
        if not name and child and _stat(child)[1] != pid:
            raise _Moved
        if not name:
            return None
        if (nick := _marked_nick(pid)) is not None:
            return nick
        if name == DAEMON:
            return SOME_AGENT
        if parent <= 1:
            return None
        child, pid = pid, parent
    return SOME_AGENT


def _marked_nick(pid: int) -> str | None:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    for variable in environment:
        if variable.startswith(_MARK) and len(variable) > len(_MARK):
            nick = variable.removeprefix(_MARK).decode(errors="replace")
            return nick if valid_nick(nick, _LONGEST_NICK) else SOME_AGENT
    return None


def _stat(pid: int) -> tuple[str, int]:
    """The name and the parent of a process; an empty name where there is none."""
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
        # The name stands in brackets, and may have any in it.
        before, _, after = stat.rpartition(b")")
        return before.partition(b"(")[2].decode(errors="replace") or "?", int(after.split()[1])
    except (OSError, IndexError, ValueError):
        return "", 0
