"""One writer at a time, also among processes."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from culture.config import paths
from culture.wiki.errors import DiskFull, WikiUnavailable

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_PATIENCE = 30.0
_PAUSE = 0.01


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the file; the kernel lets go of it with the process, however that ends."""
    try:
        # Not with the folders above it: a wiki that has gone must not come back empty.
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, paths.PRIVATE_FILE)
    except FileNotFoundError:
        raise WikiUnavailable(f"there is no wiki in {path.parent}") from None
    except OSError as error:
        kind = DiskFull if error.errno in NO_ROOM else WikiUnavailable
        raise kind(f"the wiki cannot be written: {path}: {error.strerror}") from error
    try:
        _lock(file)
        yield
    finally:
        os.close(file)


def _lock(file: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise WikiUnavailable(f"somebody else has been writing the wiki for {_PATIENCE:g} s") from None
            time.sleep(_PAUSE)
