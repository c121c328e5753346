"""Log lines on standard error, in which foreign text cannot control the terminal."""

import logging
import sys
from types import TracebackType
from typing import TextIO

from culture.protocol.text import Profile, clean

FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class LogFormatter(logging.Formatter):
    """Formats each log record as one line; only a traceback follows on further lines."""

    def __init__(self) -> None:
        super().__init__(FORM)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line for a record, with invisible and control characters made harmless."""
        record.message = clean(record.message, Profile.LOG)
        return super().formatMessage(record)

    def formatException(self, ei: _Raised) -> str:
        """Return a traceback as lines that are cleaned, since the last one may quote untrusted text."""
        return "\n".join(clean(line, Profile.LOG) for line in super().formatException(ei).split("\n"))


def start_logging(level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Write the log to standard error (or ``stream``), unless logging is already set up.

    ``level``: the least important level that is logged.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LogFormatter())
    logging.basicConfig(level=level, handlers=[handler])
