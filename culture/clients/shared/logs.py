"""The log of a daemon in the background: a file that does not grow without end."""

import logging
import os
import shutil
import stat
import sys
from pathlib import Path

from culture.config import paths
from culture.lib.files import open_private

MOST = 8 << 20
"""When the log is longer than this it begins anew; so much of what was in it is kept until the next time."""


class Bound(logging.Handler):
    """Looks at the size of the log whenever something was written into it.

    The file stays the same one, as the agent's programs and whoever follows it have it open too.
    """

    def __init__(self, file: Path, most: int = MOST) -> None:
        super().__init__()
        self._file = file
        self._most = most

    def emit(self, record: logging.LogRecord) -> None:
        """Begin the file anew, where it is long."""
        try:
            if self._file.stat().st_size > self._most:
                self._begin_anew()
        except OSError as error:
            # Not into the log, which would come here again.
            sys.stderr.write(f"the log cannot be shortened: {error}\n")

    def _begin_anew(self) -> None:
        before = os.open(self._file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(before, "r+b") as log:
            kept = open_private(older(self._file), os.O_WRONLY | os.O_TRUNC)
            # One that has grown without this may be far longer.
            log.seek(max(0, log.seek(0, os.SEEK_END) - self._most))
            with os.fdopen(kept, "wb") as copy:
                shutil.copyfileobj(log, copy)
            log.truncate(0)


def older(file: Path) -> Path:
    """Where a log is kept that began anew."""
    return file.with_name(f"{file.name}.1")


def bound(nick: str) -> None:
    """Keep the log of a daemon within bounds, where what it prints is its log: not under systemd or in a terminal."""
    file = paths.log_file(nick)
    try:
        printed = os.fstat(sys.stderr.fileno())
        is_log = stat.S_ISREG(printed.st_mode) and os.path.samestat(printed, file.stat())
    except (OSError, ValueError):
        return
    if is_log:
        logging.getLogger().addHandler(Bound(file))
