"""Event ids that are never used twice, even after a crash.

An id is server, epoch and sequence number. Sequence numbers are reserved on disk in blocks of 100,000 before their
use: after a crash the server starts behind the reserved block, so a number may be skipped but never repeated. If the
file cannot be read or written, a new random epoch begins, and the ids stay unique.
"""

import json
import logging
from pathlib import Path
from typing import NamedTuple

from culture.lib.files import replace_file
from culture.runtime import REAL, Runtime

log = logging.getLogger(__name__)

FILE = "ids.json"
BLOCK = 100_000
MICROSECONDS = 1_000_000
"""Number of microseconds in a second: times on disk and on links are whole microseconds."""
_SCHEMA = 1
_make = tuple.__new__  # NamedTuple's constructor without its overhead, for the hot path


class EventId(NamedTuple):
    """The id of an event, with the time at which its server made it (seconds since 1970)."""

    origin: str
    epoch: str
    seq: int
    at: float

    @property
    def msgid(self) -> str:
        """Return the id as clients see it, a string that is opaque to them."""
        return f"{self.origin}.{self.epoch}.{self.seq}"

    @property
    def told(self) -> float:
        """Return the event's time rounded to whole microseconds, as other servers get it."""
        return round(self.at * MICROSECONDS) / MICROSECONDS


def begin_epoch(path: Path, *, runtime: Runtime = REAL) -> str:
    """Write a file of event ids that begins a new random epoch, and return the epoch.

    A restored backup needs this, so that no id is used twice.
    """
    epoch = runtime.token_hex(4)
    replace_file(path, _document(epoch, 1), runtime=runtime)
    return epoch


def _document(epoch: str, reserved: int) -> bytes:
    return json.dumps({"schema": _SCHEMA, "epoch": epoch, "reserved": reserved}).encode()


class Ids:
    """Makes event ids that are never used twice, even after a crash.

    Sequence numbers are reserved on disk before they are used.
    """

    def __init__(self, path: Path, origin: str, *, runtime: Runtime = REAL) -> None:
        self._path = path
        self._origin = origin
        self._runtime = runtime
        self._clock = runtime.now
        self.epoch, self._next = self._load()
        self._reserved = self._next

    def stamp(self) -> EventId:
        """Return a new id with the present time."""
        seq = self._next
        if seq >= self._reserved:
            self._reserve_or_part(seq + BLOCK)
        self._next = seq + 1
        return _make(EventId, (self._origin, self.epoch, seq, self._clock()))

    @property
    def last(self) -> int:
        """Return the sequence number of the last id that was handed out."""
        return self._next - 1

    def now(self) -> float:
        """Return the present time by this object's clock (seconds since 1970)."""
        return self._clock()

    def _load(self) -> tuple[str, int]:
        # An unreadable file means a new epoch: a number may repeat then, an id cannot.
        try:
            document = json.loads(self._path.read_text())
            return str(document["epoch"]), int(document["reserved"])
        except (OSError, ValueError, KeyError, TypeError):
            return self._runtime.token_hex(4), 1

    def _reserve_or_part(self, until: int) -> None:
        """Reserve sequence numbers up to ``until`` on disk; if that fails, begin a new random epoch."""
        try:
            self._reserve(until)
        except OSError as error:
            self.epoch = self._runtime.token_hex(4)
            self._reserved = until
            log.error("cannot reserve ids in %s: %s; going on as epoch %s", self._path, error.strerror, self.epoch)

    def _reserve(self, until: int) -> None:
        replace_file(self._path, _document(self.epoch, until), runtime=self._runtime)
        self._reserved = until
