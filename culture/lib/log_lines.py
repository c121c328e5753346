"""Log lines on standard error: foreign text in them cannot control the terminal or start a new line."""

import logging
import sys
from types import TracebackType
from typing import TextIO

from culture.protocol.text import Profile, clean

FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class LogFormatter(logging.Formatter):
    """Formats each record as one line; only tracebacks have more."""

    def __init__(self) -> None:
        super().__init__(FORM)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Format the record's line, after cleaning its message of invisible and control characters."""
        record.message = clean(record.message, Profile.LOG)
        return super().formatMessage(record)

    def formatException(self, ei: _Raised) -> str:
        """Format a traceback with each line cleaned, since the last one may quote foreign text."""
        return "\n".join(clean(line, Profile.LOG) for line in super().formatException(ei).split("\n"))


def start_logging(level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Log to standard error, unless logging is already set up."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LogFormatter())
    logging.basicConfig(level=level, handlers=[handler])
