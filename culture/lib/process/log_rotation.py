"""Keeps the log file of a process below a size, while other processes have it open too.

The log is the process's own standard output and error, which every program that it starts inherits. To rename the file
would leave all of those writing to the old one for ever. So the file stays the same: what it holds is copied aside, and
it is cut to nothing. Everybody writes at its end (``O_APPEND``), so the next line is at its beginning again. A line
that a child writes between the copy and the cut is lost; the process's own lines wait, as their handlers are locked.
"""

import fcntl
import logging
import os
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

from culture.lib.files import open_private

MAX_BYTES = 10_000_000
"""Bytes after which a log is copied to ``.1``, what was ``.1`` is renamed to ``.2``, and so on."""
_STDOUT, _STDERR = 1, 2


def is_own_output(file: Path) -> bool:
    """Return whether this process's standard error is written to the file."""
    try:
        return os.path.samestat(os.fstat(_STDERR), file.stat())
    except OSError:
        return False


def rotate_own_log(file: Path, max_bytes: int = MAX_BYTES, copies: int = 1) -> None:
    """Rotate this process's own log from now on, each time that it reaches ``max_bytes``.

    ``copies``: how many older copies are kept. Does nothing if standard error is not written to ``file``, as under
    systemd or in a terminal.
    """
    if is_own_output(file):
        logging.getLogger().addHandler(LogRotation(file, max_bytes, copies))


def rotated(file: Path, number: int = 1) -> Path:
    """Return the path of a log's older copy; ``number`` 1 is the most recent one."""
    return file.with_name(f"{file.name}.{number}")


class LogRotation(logging.Handler):
    """A log handler that rotates the log when it is too large; it checks this after every line.

    It must follow the handler that writes the lines.
    """

    def __init__(self, file: Path, max_bytes: int = MAX_BYTES, copies: int = 1) -> None:
        super().__init__()
        self._file = file
        self._max_bytes = self._limit = max_bytes
        self._copies = copies
        self._is_output = is_own_output(file)

    def emit(self, record: logging.LogRecord) -> None:
        """Rotate the log if it is too large; ``record`` was already written by another handler."""
        try:
            # Somebody may have moved it away, to keep it: then it is still the output, and no longer at its path.
            is_moved = self._is_output and not is_own_output(self._file)
            size = os.fstat(_STDERR).st_size if is_moved else self._file.stat().st_size
            if size >= self._limit:
                self._limit = size + self._max_bytes  # where it fails, it is not tried again with each line
                if is_moved:
                    self._begin_again()
                else:
                    self._rotate()
                self._limit = self._max_bytes
        except OSError as error:
            # Not into the log, which would come here again.
            sys.stderr.write(f"the log {self._file} cannot be rotated: {error}\n")

    def _begin_again(self) -> None:
        """Redirect the output to a new file at the log's path, since somebody has moved the log."""
        new = open_private(self._file, os.O_WRONLY | os.O_APPEND)
        try:
            for stream, descriptor in ((sys.stdout, _STDOUT), (sys.stderr, _STDERR)):
                stream.flush()
                os.dup2(new, descriptor)
        finally:
            os.close(new)

    def _rotate(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        with ExitStack() as locked, os.fdopen(_open_existing(self._file), "r+b") as log:
            for handler in logging.getLogger().handlers:
                if handler is not self:
                    handler.acquire()
                    locked.callback(handler.release)
            for number in range(self._copies - 1, 0, -1):
                if rotated(self._file, number).exists():
                    os.replace(rotated(self._file, number), rotated(self._file, number + 1))
            copy = open_private(rotated(self._file), os.O_WRONLY | os.O_TRUNC)
            # One that has grown without this may be far longer.
            log.seek(max(0, log.seek(0, os.SEEK_END) - 2 * self._max_bytes))
            with os.fdopen(copy, "wb") as older:
                shutil.copyfileobj(log, older)
            log.truncate(0)
        _append(_STDOUT, _STDERR)


def _open_existing(file: Path) -> int:
    return os.open(file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)


def _append(*descriptors: int) -> None:
    """Set O_APPEND on these descriptors: after a rotation, writes go to the end of the file."""
    for descriptor in descriptors:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
