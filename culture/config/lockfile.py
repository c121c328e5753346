"""A file that one living process holds: the kernel lets go of it when that process ends, however it ends."""

import fcntl
import os
import time
from pathlib import Path

from culture.config import paths

# Somebody who only looks holds the file for a moment, which must not keep a server from starting.
TRIES = 10
PAUSE = 0.02


class LockTaken(Exception):
    """Somebody else holds the file; ``note`` is what they wrote in it."""

    def __init__(self, note: str) -> None:
        super().__init__(note)
        self.note = note


class LockFile:
    """A file to hold, with a note in it for those who find it held."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def acquire(self, note: str) -> None:
        """Hold the file, or raise Taken."""
        for attempt in range(TRIES):
            fd = paths.open_private(self.path, os.O_RDWR)
            if _locked(fd, fcntl.LOCK_EX) and _is_still(self.path, fd):
                self._fd = fd
                self.write(note)
                return
            os.close(fd)
            if attempt < TRIES - 1:
                time.sleep(PAUSE)
        raise LockTaken(_read(self.path))

    def write(self, note: str) -> None:
        """Replace the note; only the holder may."""
        data = note.encode()
        os.pwrite(self._fd, data, 0)
        os.ftruncate(self._fd, len(data))

    def release(self, *, remove: bool = False) -> None:
        """Let go, and take the file away if asked to; harmless when it is not held."""
        if self._fd >= 0:
            if remove:
                self.path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1


def note_of_holder(path: Path) -> str | None:
    """What the living holder of a file wrote in it; None when nobody holds it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        return None if _locked(fd, fcntl.LOCK_SH) else _read(path)
    finally:
        os.close(fd)


def _locked(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(path: Path, fd: int) -> bool:
    """Whether the name still leads to the open file: its last holder may have removed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
