"""Event ids: durable, never used twice, whatever ends the process."""

import json
import logging
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from culture.server import disk

log = logging.getLogger(__name__)

FILE = "ids.json"
BLOCK = 100_000
MICROSECONDS = 1_000_000
"""So many are a second: what is kept, and what crosses a link, has its time in them."""
_SCHEMA = 1
_make = tuple.__new__  # what a NamedTuple's own constructor does, without the call around it


class EventId(NamedTuple):
    """Names an event and says when it happened at its origin (seconds since 1970)."""

    origin: str
    epoch: str
    seq: int
    at: float

    @property
    def msgid(self) -> str:
        """The id as clients see it: opaque to them."""
        return f"{self.origin}.{self.epoch}.{self.seq}"

    @property
    def told(self) -> float:
        """The time in whole microseconds, as other servers get to know it."""
        return round(self.at * MICROSECONDS) / MICROSECONDS


def begin_epoch(path: Path) -> str:
    """Begin a new line of ids, as whoever puts an old state back must: what came after it has its ids elsewhere."""
    epoch = secrets.token_hex(4)
    disk.replace(path, _kept(epoch, 1))
    return epoch


def _kept(epoch: str, reserved: int) -> bytes:
    return json.dumps({"schema": _SCHEMA, "epoch": epoch, "reserved": reserved}).encode()


class Ids:
    """Hands out stamps; sequence numbers are reserved on disk, a block at a time, before their use."""

    def __init__(self, path: Path, origin: str, clock: Callable[[], float]) -> None:
        self._path = path
        self._origin = origin
        self._clock = clock
        self.epoch, self._next = self._load()
        self._reserved = self._next

    def stamp(self) -> EventId:
        """A new id and the time."""
        seq = self._next
        if seq >= self._reserved:
            self._reserve_or_part(seq + BLOCK)
        self._next = seq + 1
        return _make(EventId, (self._origin, self.epoch, seq, self._clock()))

    @property
    def last(self) -> int:
        """The number of the last stamp."""
        return self._next - 1

    def now(self) -> float:
        """The time as stamps tell it."""
        return self._clock()

    def _load(self) -> tuple[str, int]:
        # What cannot be read whole gets a new epoch: a number may then come again, an id never.
        try:
            kept = json.loads(self._path.read_text())
            return str(kept["epoch"]), int(kept["reserved"])
        except (OSError, ValueError, KeyError, TypeError):
            return secrets.token_hex(4), 1

    def _reserve_or_part(self, until: int) -> None:
        """Reserve; where the disk does not let us, go on in an epoch that no start after this one will know."""
        try:
            self._reserve(until)
        except OSError as error:
            self.epoch = secrets.token_hex(4)
            self._reserved = until
            log.error("cannot reserve ids in %s: %s; going on as epoch %s", self._path, error.strerror, self.epoch)

    def _reserve(self, until: int) -> None:
        disk.replace(self._path, _kept(self.epoch, until))
        self._reserved = until
