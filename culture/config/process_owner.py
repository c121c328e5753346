"""Whether a process is an agent's or a person's; for command line, server and daemons.

A daemon starts its agent with ``CULTURE_NICK`` in the environment, and every process inherits the environment that it
was started with; later changes do not show in /proc. So a process is an agent's if it or any of its ancestors was
started with that variable. A process that loses both, by a new environment and by a parent that exits, becomes a child
of the daemon, because the daemon is a subreaper (lib/process), and the daemon is known by the name of its process. What
another program starts on request (cron, systemd, a running terminal multiplexer) does not descend from the agent, and
cannot be told from a person's.

This is no security boundary: an agent has the uid of its owner. It keeps an agent from acting as a person by accident,
or because a text told it to.
"""

import os
from pathlib import Path

from culture.protocol.names import valid_nick
from culture.protocol.vocabulary import Environment
from culture.runtime import REAL, Runtime

DAEMON = "culture-agent"
"""The process name of a daemon (at most 15 bytes), as ``ps`` and /proc/<pid>/stat show it."""
SOME_AGENT = "an agent"
"""Stands for the agent's nick if only its daemon is known."""
PATIENCE = 5.0

_PROC = Path("/proc")
_DEEPEST = 4096  # generations: deeper nesting, or endless moving, counts as hiding
_WALKS = 20
_LONGEST_NICK = 128
_MARK = f"{Environment.NICK}=".encode()


class TooManyProcesses(Exception):
    """The processes of this machine could not be searched in time."""


def own_agent() -> str | None:
    """Return the nick of the agent that this process belongs to; None for a person's process."""
    return os.environ.get(Environment.NICK) or agent_of(os.getppid())


def agent_of(pid: int) -> str | None:
    """Return the nick of the agent for which a process or one of its ancestors was started.

    None for a person's process; ``SOME_AGENT`` if it is an agent's, or could be one, and its nick cannot be read.
    """
    for _ in range(_WALKS):
        try:
            return _walk(pid)
        except _Moved:
            continue
    return SOME_AGENT


def name_of(pid: int) -> str:
    """Return the name of a process, at most 15 bytes; "" if the process has ended."""
    return _stat(pid)[0]


def take_daemon_name() -> None:
    """Give this process the name by which ``agent_of`` recognises an agent's daemon."""
    (_PROC / "self" / "comm").write_text(DAEMON, encoding="ascii")


def holders(inode: int, patience: float = PATIENCE, *, runtime: Runtime = REAL) -> list[int]:
    """Return the pids of the processes that have a socket open and that this user may see.

    ``inode``: the inode of the socket. Blocks: about 10 µs for each process and 2 µs for each open file; raises
    TooManyProcesses after ``patience`` seconds.
    """
    link, deadline, pids = f"socket:[{inode}]", runtime.monotonic() + patience, []
    for entry in os.listdir(_PROC):
        if entry.isdecimal() and _holds(entry, link):
            pids.append(int(entry))
        if runtime.monotonic() > deadline:
            raise TooManyProcesses
    return pids


def _holds(pid: str, link: str) -> bool:
    folder = f"{_PROC}/{pid}/fd"
    try:
        return any(_target(f"{folder}/{each}") == link for each in os.listdir(folder))
    except OSError:
        return False


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:  # closed meanwhile
        return ""


class _Moved(Exception):
    """A process ended while ancestors were followed: its children have another parent now."""


def _walk(pid: int) -> str | None:
    """Return the agent's nick in the environment of a process or its nearest ancestor with one.

    None if none has a nick, up to the first process that cannot be read; ``SOME_AGENT`` below a daemon or after too
    many ancestors. Raises _Moved if a process ends meanwhile.
    """
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
    """Return the name of a process and the pid of its parent; the name "" if it does not exist."""
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
        # The name is in brackets and may contain brackets.
        before, _, after = stat.rpartition(b")")
        return before.partition(b"(")[2].decode(errors="replace") or "?", int(after.split()[1])
    except (OSError, IndexError, ValueError):
        return "", 0
