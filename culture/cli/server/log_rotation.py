"""What a server in the background prints: a file that is put aside when it is large, and a few of those kept."""

import logging
import os
import sys
from pathlib import Path

from culture.lib.files import open_private
from culture.lib.log_lines import LogFormatter

MOST = 10_000_000
"""Bytes after which a file is put aside as ``.1``, what was ``.1`` as ``.2`` and so on."""
KEPT = 4
_STDOUT, _STDERR = 1, 2


def prints_to(file: Path) -> bool:
    """Whether this process was started with its output going to the file."""
    try:
        return os.path.samestat(os.fstat(_STDERR), file.stat())
    except OSError:
        return False


class Printing(logging.StreamHandler):  # type: ignore[type-arg]
    """Logs to standard error, and looks after the file that this is."""

    def __init__(self, file: Path, most: int = MOST, kept: int = KEPT) -> None:
        super().__init__(sys.stderr)
        self.setFormatter(LogFormatter())
        self._file = file
        self._most = self._limit = most
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        """One more line; it is the last of a file that is large enough."""
        super().emit(record)
        try:
            size = os.fstat(_STDERR).st_size
            if size >= self._limit:
                self._limit = size + self._most  # where it cannot be put aside, it is not tried with each line
                self._begin_anew()
                self._limit = self._most
        except OSError:
            self.handleError(record)

    def _begin_anew(self) -> None:
        """Whatever the process prints goes to a new file, tracebacks too."""
        if prints_to(self._file):  # else another process has put it aside
            for number in range(self._kept - 1, 0, -1):
                older = _aside(self._file, number)
                if older.exists():
                    os.replace(older, _aside(self._file, number + 1))
            os.replace(self._file, _aside(self._file, 1))
        new = open_private(self._file, os.O_WRONLY | os.O_APPEND)
        try:
            for stream, descriptor in ((sys.stdout, _STDOUT), (sys.stderr, _STDERR)):
                stream.flush()
                os.dup2(new, descriptor)
        finally:
            os.close(new)


def _aside(file: Path, number: int) -> Path:
    return file.with_name(f"{file.name}.{number}")


def begin(file: Path, most: int = MOST, kept: int = KEPT) -> None:
    """Log from now on so that the file, if it is where the output goes, does not grow for ever."""
    if prints_to(file):
        logging.basicConfig(level=logging.INFO, handlers=[Printing(file, most, kept)], force=True)
