"""Finding messages by their words, newest first.

A word that is common is found among the newest messages of the place, one that is rare by the index of words, which
has no order: all that it finds must be read and sorted. How common a word is, the newest messages tell.
"""

from collections.abc import AsyncIterator

from culture.runtime import REAL, Runtime
from culture.skills.history.entry import Sort
from culture.skills.history.postgres.driver import Connection, Record, asyncpg
from culture.skills.history.postgres.rows import HIGHEST, Values, allowed, kept, rows_of
from culture.skills.history.postgres.wording import may_fit, question
from culture.skills.history.store import Kept, TooSlow, View
from culture.skills.history.words import Query, fits

_NEWEST = 1_000
_DEARER = 5  # to read a message that the index found, beside one that is next in the place
_SIZE = 200  # bytes of a message in the table, roughly
_TEXT = 9  # the column
_AHEAD = 500  # rows to fetch at a time
_PLACE = "SELECT id, pg_relation_size('history_entries') FROM history_places WHERE key = $1"
_FLOOR = (
    f"SELECT position FROM history_entries WHERE place = $1 AND sort = {Sort.MESSAGE:d}"
    " ORDER BY position DESC OFFSET $2 LIMIT 1"
)


class Search:
    """One search, on one connection, until a time."""

    def __init__(
        self,
        connection: Connection,
        view: View,
        query: Query,
        limit: int,
        seconds: float,
        runtime: Runtime = REAL,
    ) -> None:
        self._connection = connection
        self._view = view
        self._query = query
        self._limit = limit
        self._monotonic = runtime.monotonic
        self._end = self._monotonic() + seconds
        self._milliseconds = max(1, int(seconds * 1000))
        self._found: list[Kept] = []
        self._seen = 0  # messages with the words, whether they fit or not

    async def run(self) -> list[Kept]:
        """The newest that fit, oldest first."""
        if not (self._query.terms or self._query.needles) or self._limit < 1:
            return []
        try:
            async with self._connection.transaction(readonly=True):
                await self._connection.execute(f"SET LOCAL statement_timeout = {self._milliseconds}")
                row = await self._connection.fetchrow(_PLACE, self._view.place)
                if row is not None:
                    await self._search(*row)
        except asyncpg.QueryCanceledError as error:
            raise TooSlow from error
        return self._found[::-1]

    async def _search(self, place: int, size: int) -> None:
        if not self._query.terms:
            await self._look(place, HIGHEST, None)
            return
        floor = await self._look(place, HIGHEST, _NEWEST)
        if floor is None:
            return
        deeper = _NEWEST * self._limit * 5 // max(1, 4 * len(self._found))  # if the rest is like these
        if deeper <= self._seen * size // _SIZE // _NEWEST * _DEARER:
            floor = await self._look(place, floor, deeper)
        if floor is not None:
            await self._look_up(place, floor)

    async def _look(self, place: int, below: int, depth: int | None) -> int | None:
        """Look at each message below a position, down to so many from the newest; where that is, if more are wanted."""
        floor = None if depth is None else await self._connection.fetchval(_FLOOR, place, depth)
        values = Values()
        has_words = "TRUE"
        if self._query.terms:  # said so that the index of words is not used
            has_words = f"(e.words @@ {values(question(place, self._query))}::text::tsquery) IS TRUE"
        await self._take(
            f"e.place = {values(place)} AND e.sort = {Sort.MESSAGE:d} AND e.position < {values(below)}"
            f" AND e.position >= {values(floor or 0)} AND {has_words}",
            values,
        )
        return None if len(self._found) == self._limit else floor

    async def _look_up(self, place: int, below: int) -> None:
        """Ask the index of words for those below a position."""
        await self._connection.execute("SET LOCAL enable_bitmapscan = on")
        values = Values()
        asked = values(question(place, self._query))
        await self._take(f"e.words @@ {asked}::text::tsquery AND e.position < {values(below)}", values)

    async def _take(self, where: str, values: Values) -> None:
        """Add those that fit, until there are enough."""
        where = f"{where} AND {allowed(self._view, values)} AND {may_fit(self._query, values)}"
        async for row in self._rows(where, values):
            self._seen += 1
            if fits(self._query, row[_TEXT]):
                self._found.append(kept(row))
                if len(self._found) == self._limit:
                    break
            if self._monotonic() > self._end:
                raise TooSlow

    async def _rows(self, where: str, values: Values) -> AsyncIterator[Record]:
        entries = f"(SELECT * FROM history_entries e WHERE {where} ORDER BY e.position DESC"
        if self._query.needles:
            async for row in self._connection.cursor(rows_of(f"{entries})", "DESC"), *values, prefetch=_AHEAD):
                yield row
            return
        wanted = self._limit - len(self._found)
        for row in await self._connection.fetch(rows_of(f"{entries} LIMIT {values(wanted)})", "DESC"), *values):
            yield row
