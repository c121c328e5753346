"""Explains why a port cannot be used, naming the process that has it."""

import errno
import os
import re
from pathlib import Path

_LISTENING = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def explain(error: OSError, host: str, port: int) -> str:
    """Return a text for people: why an address cannot be listened on, and what to do about it."""
    place = f"{host} port {port}"
    if error.errno == errno.EADDRINUSE:
        pid = owner(port)
        who = f" by {program(pid)} (pid {pid})" if pid else " by another program"
        return (
            f"{place} is taken{who}.\n"
            "See whether it is a server of yours with `culture server status`, or choose another port with --port."
        )
    if error.errno == errno.EACCES:
        return f"{place} needs more rights than you have: choose a port above 1023 with --port."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{place}: this machine has no such address. Choose one of its own with --host."
    return f"cannot listen on {place}: {error.strerror or error}"


def owner(port: int) -> int | None:
    """Return the pid of the process that listens on a TCP port.

    None if this user may not see it.
    """
    inodes = {inode for table in ("tcp", "tcp6") for inode in _listeners(Path("/proc/net") / table, port)}
    return next((pid for pid in _processes() if inodes & _sockets(pid)), None) if inodes else None


def program(pid: int) -> str:
    """Return the name of a process; "a program" if it cannot be read."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "a program"


def _listeners(table: Path, port: int) -> list[str]:
    try:
        rows = [line.split() for line in table.read_text(encoding="ascii").splitlines()[1:]]
    except OSError:
        return []
    return [row[9] for row in rows if row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port]


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _sockets(pid: int) -> set[str]:
    folder, inodes = f"/proc/{pid}/fd", set()
    try:
        for fd in os.listdir(folder):
            match = _SOCKET.fullmatch(os.readlink(f"{folder}/{fd}"))
            if match:
                inodes.add(match[1])
    except OSError:
        # The process has ended, or belongs to another user.
        pass
    return inodes
