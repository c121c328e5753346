"""The store as a whole: one connection writes, each reading thread has one of its own."""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from culture.server.database import open_database, open_reader
from culture.skills.history.entry import Entry
from culture.skills.history.sqlite import upkeep
from culture.skills.history.sqlite.errors import translated
from culture.skills.history.sqlite.reading import Reading
from culture.skills.history.sqlite.schema import STEPS
from culture.skills.history.sqlite.writing import Writing
from culture.skills.history.store import Kept, Stats, Talk, Unavailable, View, position_at
from culture.skills.history.words import Query

_CACHE = 32  # MiB
_REMOVED_AT_ONCE = 1_000


Result = TypeVar("Result")


class SQLiteStore:
    """A Store in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._writing: Writing | None = None
        self._turn = threading.Lock()
        self._threads = threading.local()
        self._readers: list[sqlite3.Connection] = []

    def open(self) -> None:
        """Make ready, with a schema as new as this program."""
        with translated():
            self._connection = open_database(self.path, STEPS)
            self._connection.execute(f"PRAGMA cache_size=-{_CACHE * 1024}")
            self._writing = Writing(self._connection)

    def close(self) -> None:
        """Let go of it."""
        for reader in self._readers:
            reader.close()
        self._readers.clear()
        self._threads = threading.local()
        if self._connection is not None:
            self._connection.close()
        self._connection = self._writing = None

    @contextmanager
    def _transaction(self) -> Iterator[Writing]:
        with self._turn, translated():
            connection, writing = self._connection, self._writing
            if connection is None or writing is None:
                raise Unavailable("the history is closed")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield writing
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                writing.forget()
                raise

    @property
    def _reading(self) -> Reading:
        reading: Reading | None = getattr(self._threads, "reading", None)
        if reading is None:
            with translated():
                connection = open_reader(self.path)
            self._readers.append(connection)
            reading = self._threads.reading = Reading(connection)
        return reading

    def write(self, batch: Sequence[Entry]) -> None:
        """Keep them all, durably, or none."""
        with self._transaction() as writing:
            writing.add(batch)

    def move(self, old: str, new: str, name: str) -> None:
        """A channel has another name."""
        with self._transaction() as writing:
            writing.move(old, new, name)

    def prune(self, place: str | None, before: int) -> int:
        """Remove what is older in a channel, or (None) in all private conversations; how many were removed."""
        places = upkeep.places(self._reading.connection, place)
        removed = 0
        while places:
            with self._transaction() as writing:
                some = writing.remove(places, position_at(before), _REMOVED_AT_ONCE)
            removed += some
            if some < _REMOVED_AT_ONCE:
                break
        return removed

    def page(self, view: View, after: int | None, before: int | None, limit: int, newest: bool) -> list[Kept]:
        """Up to so many between two positions, oldest first; the newest of them or the oldest."""
        return self._read(lambda reading: reading.page(view, after, before, limit, newest))

    def position(self, place: str, msgid: str) -> int | None:
        """Where the message is."""
        return self._read(lambda reading: reading.position(place, msgid))

    def search(self, view: View, query: Query, limit: int, seconds: float) -> list[Kept]:
        """The newest messages that fit, oldest first."""
        with self._reading.within(seconds):
            return self._read(lambda reading: reading.search(view, query, limit))

    def get(self, view: View, positions: Sequence[int]) -> list[Kept]:
        """Those of these messages that may be seen."""
        return self._read(lambda reading: reading.get(view, positions))

    def messages(self, after: int, limit: int) -> list[Kept]:
        """Up to so many messages of all channels behind a position, oldest first."""
        return self._read(lambda reading: reading.messages(after, limit))

    def talks(self, party: str, since: int, channels: Sequence[View], after: int, before: int) -> list[Talk]:
        """The party's conversations and these channels, by the time of their last message."""
        return self._read(lambda reading: reading.talks(party, since, channels, after, before))

    def exists(self, place: str) -> bool:
        """Was anything ever kept there?"""
        return self._read(lambda reading: reading.place(place)) is not None

    def stats(self) -> list[Stats]:
        """Every channel, and the private conversations together."""
        return self._read(lambda reading: upkeep.stats(reading.connection))

    def everything(self, place: str | None = None) -> Iterator[Kept]:
        """All entries of a place or of all places, oldest first."""
        with translated():
            yield from upkeep.everything(self._reading.connection, place)

    def verify(self) -> Iterable[str]:
        """Look through everything; each problem found."""
        with translated():
            yield from upkeep.verify(self._reading.connection)

    def _read(self, ask: Callable[[Reading], Result]) -> Result:
        with translated():
            return ask(self._reading)
