"""The store as a whole: what others ask in their threads, asked of the database in one of its own."""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from culture.runtime import REAL, Runtime
from culture.skills.history.entry import Entry
from culture.skills.history.postgres import arrivals, health, reading, upkeep
from culture.skills.history.postgres.connections import Connections
from culture.skills.history.postgres.driver import Connection
from culture.skills.history.postgres.errors import is_deadlock, translated
from culture.skills.history.postgres.loop import Loop
from culture.skills.history.postgres.schema import migrate
from culture.skills.history.postgres.searching import Search
from culture.skills.history.postgres.turns import Turns
from culture.skills.history.postgres.writing import Clash, Writing
from culture.skills.history.punctuality import Punctuality
from culture.skills.history.store import Arrival, Gap, Kept, Missed, Stats, Talk, View
from culture.skills.history.words import Query

Result = TypeVar("Result")
Act = Callable[[Connection], Awaitable[Result]]


class PostgresStore:
    """A Store in a database, at ``postgresql://user@host/database``; servers of other names may use the same one."""

    def __init__(
        self, url: str, name: str = "", now: Callable[[], float] | None = None, runtime: Runtime = REAL
    ) -> None:
        self._runtime = runtime
        self._connections = Connections(url)
        self._turns = Turns(self._connections)
        self._name = name
        self._writer = 0  # the number of the name
        self._punctuality = Punctuality(now or runtime.now)
        self._writing = Writing(self._punctuality)
        self._loop = Loop(runtime=runtime)

    def open(self) -> None:
        """Make ready, with a schema as new as this program."""
        self._loop.start()
        try:
            with translated(is_open=False):
                self._loop.run(self._prepare())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of it."""
        self._loop.stop(self._connections.close())

    def write(self, batch: Sequence[Entry]) -> set[str]:
        """Keep them all, durably, or none; the ids of those that are another message's."""
        if not batch:
            return set()
        with translated():
            return self._loop.run(self._write(batch))

    def reopen(self, messages: Sequence[tuple[str, str]]) -> None:
        """These were said in an open channel."""
        self._change(lambda connection: upkeep.reopen(connection, messages))

    def move(self, old: str, new: str, name: str) -> None:
        """A channel has another name."""
        self._change(lambda connection: upkeep.move(connection, old, new, name))

    def prune(self, place: str | None, before: int) -> int:
        """Remove what is older in a channel, or (None) in all private conversations; how many were removed."""
        removed = 0
        while True:
            some = self._change(lambda connection: upkeep.remove(connection, place, before))
            removed += some
            if some < upkeep.AT_ONCE:
                return removed

    def note_gap(self, since: int, until: int, lost: int) -> None:
        """Remember that messages between two times were lost to the history."""
        self._change(lambda connection: upkeep.note_gap(connection, since, until, lost))

    def gaps(self) -> list[Gap]:
        """When messages were lost, the oldest first."""
        return self._read(upkeep.gaps)

    def page(self, view: View, after: int | None, before: int | None, limit: int, newest: bool) -> list[Kept]:
        """Up to so many between two positions, oldest first; the newest of them or the oldest."""
        return self._read(lambda connection: reading.page(connection, view, after, before, limit, newest))

    def position(self, place: str, msgid: str) -> int | None:
        """Where the message is."""
        return self._read(lambda connection: reading.position(connection, place, msgid))

    def locate(self, view: View, msgid: str) -> int | None:
        """The same, if the reader may know of it."""
        return self._read(lambda connection: reading.locate(connection, view, msgid))

    def search(self, view: View, query: Query, limit: int, seconds: float) -> list[Kept]:
        """The newest messages that fit, oldest first."""
        return self._read(
            lambda connection: Search(connection, view, query, limit, seconds, runtime=self._runtime).run()
        )

    def get(self, view: View, positions: Sequence[int]) -> list[Kept]:
        """Those of these messages that may be seen."""
        return self._read(lambda connection: reading.get(connection, view, positions))

    def messages(self, after: int, limit: int) -> list[Kept]:
        """Up to so many messages of all channels behind a position, oldest first."""
        return self._read(lambda connection: reading.messages(connection, after, limit))

    def talks(self, party: str, since: int, channels: Sequence[View], after: int, before: int) -> list[Talk]:
        """The party's conversations and these channels, by the time of their last message."""
        return self._read(lambda connection: reading.talks(connection, party, since, channels, after, before))

    def arrivals(self, msgid: str) -> dict[str, Arrival]:
        """When the message came to this server, by the place that it came to."""
        return self._read(lambda connection: arrivals.of(connection, self._writer, msgid))

    def since(self, at: int) -> Arrival:
        """Behind this is everything that came to this server since a time, and some from before it."""
        return self._read(lambda connection: arrivals.since(connection, self._writer, at))

    def missed(self, views: Sequence[View], after: Arrival, limit: int) -> list[Missed]:
        """Up to so many messages that came to this server behind another, in the order in which they came."""
        return self._read(lambda connection: arrivals.missed(connection, self._writer, views, after, limit))

    def exists(self, place: str) -> bool:
        """Was anything ever kept there?"""
        return self._read(lambda connection: reading.exists(connection, place))

    def stats(self) -> list[Stats]:
        """Every channel, and the private conversations together."""
        return self._read(upkeep.stats)

    def cutoff(self, place: str | None, size: int) -> int | None:
        """The time before which to prune so that at most so many bytes remain; None if no more are there."""
        return self._read(lambda connection: upkeep.cutoff(connection, place, size))

    def everything(self, place: str | None = None) -> Iterator[Kept]:
        """All entries of a place or of all places, oldest first."""
        return self._each(lambda connection: upkeep.everything(connection, place))

    def verify(self) -> Iterable[str]:
        """Look through everything; each problem found."""
        return self._each(health.problems)

    async def _prepare(self) -> None:
        self._turns = Turns(self._connections)
        self._writing.forget()
        await self._connections.open()
        connection = await self._connections.writer()
        await migrate(connection)
        self._writer = self._writing.writer = await arrivals.writer(connection, self._name)
        self._punctuality.open(await arrivals.last(connection, self._writer))

    async def _write(self, batch: Sequence[Entry]) -> set[str]:
        takes_back = any(entry.verb == "REDACT" for entry in batch)
        try:
            return await self._add(batch, alone=takes_back)
        except Exception as error:
            if not (isinstance(error, Clash) or is_deadlock(error)):
                raise
            return await self._add(batch, alone=True)

    async def _add(self, batch: Sequence[Entry], *, alone: bool) -> set[str]:
        try:
            return await self._turns.take(
                lambda connection: self._writing.add(connection, batch, alone=alone), alone=alone
            )
        except BaseException:
            self._writing.forget()
            raise

    def _change(self, act: Act[Result]) -> Result:
        with translated():
            return self._loop.run(self._turns.take(act, alone=True))

    def _read(self, act: Act[Result]) -> Result:
        with translated():
            return self._loop.run(self._asked(act))

    async def _asked(self, act: Act[Result]) -> Result:
        async with self._connections.reader() as connection:
            return await act(connection)

    def _each(self, source: Callable[[Connection], AsyncGenerator[list[Result], None]]) -> Iterator[Result]:
        with translated():
            yield from self._loop.each(self._some(source))

    async def _some(
        self, source: Callable[[Connection], AsyncGenerator[list[Result], None]]
    ) -> AsyncGenerator[list[Result], None]:
        async with self._connections.reader() as connection, contextlib.aclosing(source(connection)) as each:
            async for some in each:
                yield some
