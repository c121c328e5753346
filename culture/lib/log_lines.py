"""Lines of a log on standard error, in which nothing that others wrote is a control of the terminal or a line end."""

import logging
import sys
from types import TracebackType
from typing import TextIO

from culture.protocol.text import Profile, clean

FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class LogFormatter(logging.Formatter):
    """One line for each message; only a traceback has more."""

    def __init__(self) -> None:
        super().__init__(FORM)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line, its message without what nobody sees."""
        record.message = clean(record.message, Profile.LOG)
        return super().formatMessage(record)

    def formatException(self, ei: _Raised) -> str:
        """The traceback, line by line: the last one may quote what somebody sent."""
        return "\n".join(clean(line, Profile.LOG) for line in super().formatException(ei).split("\n"))


def start_logging(level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Log to standard error, unless something logs already."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LogFormatter())
    logging.basicConfig(level=level, handlers=[handler])
