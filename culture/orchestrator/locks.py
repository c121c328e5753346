"""Locks that git processes have left behind."""

import os
from pathlib import Path

_LEFTOVERS = ("index.lock", "HEAD.lock")


def drop_leftovers(git_dir: Path) -> list[Path]:
    """Remove the locks of git processes that are gone; a lock that somebody has open stays."""
    gone = []
    for name in _LEFTOVERS:
        lock = git_dir / name
        if lock.exists() and not _is_open(lock):
            lock.unlink(missing_ok=True)
            gone.append(lock)
    return gone


def _is_open(file: Path) -> bool:
    """Whether a process of this machine has the file open, as far as we may see."""
    wanted = str(file)
    return any(wanted in _open_files(process) for process in Path("/proc").iterdir() if process.name.isdecimal())


def _open_files(process: Path) -> set[str]:
    found = set[str]()
    try:
        handles = os.listdir(process / "fd")
    except OSError:
        return found
    for handle in handles:
        try:
            found.add(os.readlink(process / "fd" / handle))
        except OSError:
            continue
    return found
