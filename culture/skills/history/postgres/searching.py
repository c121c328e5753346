"""Finding messages by their words, newest first.

A word that is common is found among the newest messages of the place, one that is rare by the index of words, which
has no order: all that it finds must be read and sorted. How common a word is, the newest messages tell.
"""

import time
from collections.abc import AsyncIterator

from culture.skills.history.entry import Sort
from culture.skills.history.postgres.driver import Connection, Record, asyncpg
from culture.skills.history.postgres.rows import Values, allowed, kept, rows_of
from culture.skills.history.postgres.wording import question
from culture.skills.history.store import Kept, TooSlow, View
from culture.skills.history.words import Query, fits

_NEWEST = 1_000
_DEARER = 5  # to read a message that the index found, beside one that is next in the place
_SIZE = 200  # bytes of a message in the table, roughly
_TEXT = 9  # the column
_AHEAD = 200  # rows to fetch at a time
_PLACE = "SELECT id, pg_relation_size('history_entries') FROM history_places WHERE key = $1"
_FLOOR = (
    f"SELECT position FROM history_entries WHERE place = $1 AND sort = {Sort.MESSAGE:d}"
    " ORDER BY position DESC OFFSET $2 LIMIT 1"
)


class Search:
    """One search, on one connection, until a time."""

    def __init__(self, connection: Connection, view: View, query: Query, limit: int, seconds: float) -> None:
        self._connection = connection
        self._view = view
        self._query = query
        self._limit = limit
        self._end = time.monotonic() + seconds
        self._milliseconds = max(1, int(seconds * 1000))
        self._seen = 0  # messages with the words, whether they fit or not

    async def run(self) -> list[Kept]:
        """The newest that fit, oldest first."""
        if not (self._query.terms or self._query.needles) or self._limit < 1:
            return []
        try:
            async with self._connection.transaction(readonly=True):
                await self._connection.execute(f"SET LOCAL statement_timeout = {self._milliseconds}")
                row = await self._connection.fetchrow(_PLACE, self._view.place)
                return [] if row is None else (await self._search(*row))[::-1]
        except asyncpg.QueryCanceledError as error:
            raise TooSlow from error

    async def _search(self, place: int, size: int) -> list[Kept]:
        if not self._query.terms:
            return await self._newest(place, None)
        found, is_all = await self._look(place, _NEWEST)
        if is_all or len(found) == self._limit:
            return found
        deeper = _NEWEST * self._limit * 5 // max(1, 4 * len(found))  # if the rest is like these
        if deeper <= self._seen * size // _SIZE // _NEWEST * _DEARER:
            found, is_all = await self._look(place, deeper)
            if is_all or len(found) == self._limit:
                return found
        return await self._indexed(place)

    async def _look(self, place: int, depth: int) -> tuple[list[Kept], bool]:
        """Those among so many of the newest, and whether there are no others in the place."""
        floor = await self._connection.fetchval(_FLOOR, place, depth)
        return await self._newest(place, floor), floor is None

    async def _newest(self, place: int, floor: int | None) -> list[Kept]:
        """Those among the newest of the place, down to a position."""
        values = Values()
        has_words = "TRUE"
        if self._query.terms:  # said so that the index is not used
            has_words = f"(e.words @@ {values(question(place, self._query))}::text::tsquery) IS TRUE"
        return await self._fitting(
            f"e.place = {values(place)} AND e.sort = {Sort.MESSAGE:d} AND e.position > {values(floor or -1)}"
            f" AND {has_words} AND {allowed(self._view, values)}",
            values,
        )

    async def _indexed(self, place: int) -> list[Kept]:
        """Those that the index of words has."""
        await self._connection.execute("SET LOCAL enable_bitmapscan = on")
        values = Values()
        asked = values(question(place, self._query))
        return await self._fitting(f"e.words @@ {asked}::text::tsquery AND {allowed(self._view, values)}", values)

    async def _fitting(self, where: str, values: Values) -> list[Kept]:
        found = []
        self._seen = 0
        async for row in self._rows(where, values):
            self._seen += 1
            if fits(self._query, row[_TEXT]):
                found.append(kept(row))
                if len(found) == self._limit:
                    break
            if time.monotonic() > self._end:
                raise TooSlow
        return found

    async def _rows(self, where: str, values: Values) -> AsyncIterator[Record]:
        entries = f"(SELECT * FROM history_entries e WHERE {where} ORDER BY e.position DESC"
        if not self._query.needles:
            statement = rows_of(f"{entries} LIMIT {values(self._limit)})", "DESC")
            for row in await self._connection.fetch(statement, *values):
                yield row
            return
        async for row in self._connection.cursor(rows_of(f"{entries})", "DESC"), *values, prefetch=_AHEAD):
            yield row
