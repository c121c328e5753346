"""Whose process it is: an agent's own, also when it hides who it is from what it starts."""

import os
from pathlib import Path

from culture.protocol.vocabulary import Environment

_PROC = Path("/proc")
_DEEPEST = 64
_MARK = f"{Environment.NICK}=".encode()


def own_agent() -> str | None:
    """The agent that this process belongs to; None for a person's."""
    return os.environ.get(Environment.NICK) or agent_of(os.getppid())


def agent_of(pid: int) -> str | None:
    """The agent that a process or one of those it comes from was started for.

    No boundary: that is the user of the machine. It keeps an agent from acting as a person by leaving out a variable.
    """
    for _ in range(_DEEPEST):
        if pid <= 1:
            return None
        for variable in _environment(pid):
            if variable.startswith(_MARK) and len(variable) > len(_MARK):
                return variable.removeprefix(_MARK).decode(errors="replace")
        pid = _parent(pid)
    return None


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _parent(pid: int) -> int:
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
        # The name of the program stands in brackets, and may have any in it.
        return int(stat.rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0
