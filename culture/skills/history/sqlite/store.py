"""The store as a whole: one connection writes, others read."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from culture.runtime import REAL, Runtime
from culture.server.database import Database, open_database, open_reader, transaction
from culture.skills.history.entry import Entry
from culture.skills.history.punctuality import Punctuality
from culture.skills.history.sqlite import arrivals, changes, upkeep
from culture.skills.history.sqlite.errors import translated
from culture.skills.history.sqlite.readers import Readers
from culture.skills.history.sqlite.reading import Reading
from culture.skills.history.sqlite.schema import STEPS
from culture.skills.history.sqlite.searching import search
from culture.skills.history.sqlite.writing import Writing
from culture.skills.history.store import Arrival, Gap, Kept, Missed, Stats, Talk, Unavailable, View, position_at
from culture.skills.history.words import Query

_CACHE = 32  # MiB
_REMOVED_AT_ONCE = 1_000

Result = TypeVar("Result")


class SQLiteStore:
    """A Store in a file."""

    def __init__(self, path: Path, now: Callable[[], float] | None = None, runtime: Runtime = REAL) -> None:
        self.path = path
        self._runtime = runtime
        self._punctuality = Punctuality(now or runtime.now)
        self._connection: Database | None = None
        self._writing: Writing | None = None
        self._turn = runtime.lock()
        self._readers = Readers(path, self._check, runtime=runtime)

    def open(self) -> None:
        """Make ready, with a schema as new as this program."""
        with self._turn, translated():
            self._connection = open_database(self.path, STEPS, runtime=self._runtime)
            self._connection.execute(f"PRAGMA cache_size=-{_CACHE * 1024}")
            self._connection.execute("PRAGMA secure_delete=FAST")  # what was taken back is not left in the file
            self._punctuality.open(arrivals.last(self._connection))
            self._writing = Writing(self._connection, self._punctuality)
            self._readers.open()

    def _check(self) -> None:
        if self._connection is not None:
            self._connection.check_files()

    def close(self) -> None:
        """Let go of it."""
        self._readers.close()
        with self._turn:
            if self._connection is not None:
                self._connection.close()
            self._connection = self._writing = None

    @contextmanager
    def _transaction(self) -> Iterator[tuple[sqlite3.Connection, Writing]]:
        with self._turn, translated():
            connection, writing = self._connection, self._writing
            if connection is None or writing is None:
                raise Unavailable("the history is closed")
            try:
                with transaction(connection):
                    writing.begin()
                    yield connection, writing
            except BaseException:
                writing.forget()
                raise

    def write(self, batch: Sequence[Entry]) -> set[str]:
        """Keep them all, durably, or none; the ids of those that are another message's."""
        with self._transaction() as (_, writing):
            return writing.add(batch)

    def reopen(self, messages: Sequence[tuple[str, str]]) -> None:
        """These were said in an open channel."""
        with self._transaction() as (connection, _):
            changes.reopen(connection, messages)

    def move(self, old: str, new: str, name: str) -> None:
        """A channel has another name."""
        with self._transaction() as (connection, writing):
            changes.move(connection, old, new, name)
            writing.forget()

    def prune(self, place: str | None, before: int) -> int:
        """Remove what is older in a channel, or (None) in all private conversations; how many were removed."""
        places = self._read(lambda reading: upkeep.places(reading.connection, place))
        removed = 0
        while places:
            begun = self._runtime.monotonic()
            with self._transaction() as (connection, _):
                some = changes.remove(connection, places, position_at(before), _REMOVED_AT_ONCE)
            removed += some
            if some < _REMOVED_AT_ONCE:
                break
            # Whoever else wants to write gets as much time.
            self._runtime.sleep(self._runtime.monotonic() - begun)
        return removed

    def note_gap(self, since: int, until: int, lost: int) -> None:
        """Remember that messages between two times were lost to the history."""
        with self._transaction() as (connection, _):
            changes.note_gap(connection, Gap(since, until, lost))

    def page(self, view: View, after: int | None, before: int | None, limit: int, newest: bool) -> list[Kept]:
        """Up to so many between two positions, oldest first; the newest of them or the oldest."""
        return self._read(lambda reading: reading.page(view, after, before, limit, newest))

    def position(self, place: str, msgid: str) -> int | None:
        """Where the message is."""
        return self._read(lambda reading: reading.position(place, msgid))

    def locate(self, view: View, msgid: str) -> int | None:
        """The same, if the reader may know of it."""
        return self._read(lambda reading: reading.locate(view, msgid))

    def search(self, view: View, query: Query, limit: int, seconds: float) -> list[Kept]:
        """The newest messages that fit, oldest first."""

        def ask(reading: Reading) -> list[Kept]:
            with reading.within(seconds):
                return search(reading, view, query, limit)

        return self._read(ask)

    def get(self, view: View, positions: Sequence[int]) -> list[Kept]:
        """Those of these messages that may be seen."""
        return self._read(lambda reading: reading.get(view, positions))

    def messages(self, after: int, limit: int) -> list[Kept]:
        """Up to so many messages of all channels behind a position, oldest first."""
        return self._read(lambda reading: reading.messages(after, limit))

    def talks(self, party: str, since: int, channels: Sequence[View], after: int, before: int) -> list[Talk]:
        """The party's conversations and these channels, by the time of their last message."""
        return self._read(lambda reading: reading.talks(party, since, channels, after, before))

    def arrivals(self, msgid: str) -> dict[str, Arrival]:
        """When the message came, by the place that it came to."""
        return self._read(lambda reading: arrivals.of(reading, msgid))

    def since(self, at: int) -> Arrival:
        """Behind this is everything that came since a time, and some from before it."""
        return self._read(lambda reading: arrivals.since(reading, at))

    def missed(self, views: Sequence[View], after: Arrival, limit: int) -> list[Missed]:
        """Up to so many messages that came behind another, in the order in which they came."""
        return self._read(lambda reading: arrivals.missed(reading, views, after, limit))

    def exists(self, place: str) -> bool:
        """Was anything ever kept there?"""
        return self._read(lambda reading: reading.place(place)) is not None

    def stats(self) -> list[Stats]:
        """Every channel, and the private conversations together."""
        return self._read(lambda reading: upkeep.stats(reading.connection))

    def cutoff(self, place: str | None, size: int) -> int | None:
        """The time before which to prune so that at most so many bytes remain."""
        return self._read(lambda reading: upkeep.cutoff(reading.connection, place, size))

    def gaps(self) -> list[Gap]:
        """When messages were lost."""
        return self._read(lambda reading: upkeep.gaps(reading.connection))

    def everything(self, place: str | None = None) -> Iterator[Kept]:
        """All entries of a place or of all places, oldest first, as they are when the first is asked for."""
        with translated(), closing(open_reader(self.path, runtime=self._runtime)) as connection:
            yield from upkeep.everything(connection, place)

    def verify(self) -> Iterator[str]:
        """Look through everything; each problem found."""
        with translated(), closing(open_reader(self.path, runtime=self._runtime)) as connection:
            yield from upkeep.verify(connection)

    def _read(self, ask: Callable[[Reading], Result]) -> Result:
        with translated(), self._readers.lend() as reading:
            return ask(reading)
