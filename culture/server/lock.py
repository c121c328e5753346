"""The lock of a server's data folder, which one running server at a time may hold."""

import os
from pathlib import Path

from culture.lib.files import FileLock, LockTaken
from culture.runtime import REAL, Runtime
from culture.server.errors import StartError


class DataLock:
    """Locks a server's data folder, so that no second server writes in it."""

    def __init__(self, folder: Path, *, runtime: Runtime = REAL) -> None:
        self._folder = folder
        self._lock = FileLock(folder / "lock", runtime=runtime)

    def acquire(self) -> None:
        """Make the server's data folder if need be, and lock it.

        Raises StartError, which names the holder, if another process has locked it.
        """
        try:
            self._lock.acquire(f"{os.getpid()}\n")
        except LockTaken as taken:
            raise StartError(
                f"{self._folder} is in use by another server (pid {taken.note.strip() or 'unknown'}).\n"
                "Stop that one with `culture server stop --name` and its name, "
                "or give this one a folder of its own with --data-dir."
            ) from None
        except OSError as error:
            raise StartError(f"cannot use the data folder {self._folder}: {error.strerror}") from error

    def release(self) -> None:
        """Release the lock of the data folder; does nothing if it is not held."""
        self._lock.release()
