"""Writing to the database: entries in bulk, redactions, each at a position of its own."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from culture.skills.history.entry import Entry, Sort, split_msgid
from culture.skills.history.postgres.driver import Connection
from culture.skills.history.postgres.naming import Naming
from culture.skills.history.postgres.wording import words_of
from culture.skills.history.store import TIES, position_at

_COLUMNS = (
    ("position", "bigint"),
    ("place", "integer"),
    ("sort", "smallint"),
    ("line", "integer"),
    ("seq", "bigint"),
    ("words", "text"),
    ("verb", "text"),
    ("source", "text"),
    ("account", "text"),
    ("kind", "text"),
    ("text", "text"),
    ("target", "text"),
    ("status", "text"),
    ("closed", "boolean"),
    ("data", "text"),
)
_NAMES = ", ".join(name for name, _ in _COLUMNS)
_ARRAYS = ", ".join(f"${number}::{kind}[]" for number, (_, kind) in enumerate(_COLUMNS, 1))
_INSERT = (
    f"INSERT INTO history_entries ({_NAMES}) SELECT {_NAMES.replace('words', 'words::tsvector')}"
    f" FROM unnest({_ARRAYS}) AS rows ({_NAMES}) ON CONFLICT DO NOTHING"
)
_IDS = "unnest($1::integer[], $2::bigint[], $3::integer[])"
_SAME = "e.line = t.line AND e.seq = t.seq AND e.place = t.place"
_ERASE = (
    f"UPDATE history_entries e SET sort = {Sort.REDACTED:d}, verb = '', source = '', account = NULL, kind = '',"
    f" text = '', data = '', words = NULL FROM {_IDS} AS t (line, seq, place)"
    " WHERE e.line = t.line AND e.seq = t.seq AND (e.place = t.place OR 2 ="
    " (SELECT count(*) FROM history_places p WHERE p.id IN (e.place, t.place) AND p.one <> ''))"
    " RETURNING t.line, t.seq, t.place"
)
_MISSING = (
    f"SELECT t.number FROM {_IDS} WITH ORDINALITY AS t (line, seq, place, number)"
    f" WHERE NOT EXISTS (SELECT FROM history_entries e WHERE {_SAME}) ORDER BY t.number"
)
_LAST = "SELECT coalesce(max(position), -1) FROM history_entries"
_TAKEN = f"""
    SELECT number, (
        SELECT max(position) FROM history_entries WHERE position >= start AND position < start + {1 << TIES}
    ) FROM unnest($1::bigint[]) WITH ORDINALITY AS t (start, number)
"""

Id = tuple[int, int, int]
"""The line, number and place of an entry."""


class Clash(Exception):
    """A position is somebody else's: do it again with nobody beside us."""


class Row(NamedTuple):
    """An entry as the table has it; its own columns from the verb on."""

    position: int
    place: int
    sort: int
    line: int
    seq: int
    words: str | None
    rest: tuple[str | bool | None, ...]

    @property
    def id(self) -> Id:
        """Whose position it is."""
        return self.line, self.seq, self.place

    def values(self) -> tuple[object, ...]:
        """Its columns."""
        return (*self[:-1], *self.rest)


class Writing:
    """What is done inside a transaction; ``forget`` after one that failed."""

    def __init__(self) -> None:
        self._naming = Naming()
        self._next: dict[int, int] = {}  # time → the position behind the last entry of that time

    def forget(self) -> None:
        """What is known of the tables may never have been committed."""
        self._naming.forget()
        self._next.clear()

    async def add(self, connection: Connection, batch: Sequence[Entry], *, alone: bool) -> None:
        """Keep them; a Clash is nothing that could happen while we are alone."""
        redacted = _redacted(batch)
        await self._naming.learn(connection, [*batch, *redacted])
        await self._make_room(connection, batch)
        await _put(connection, self._rows(batch), alone)
        if redacted:
            await self._erase(connection, redacted, alone)
        last = batch[-1].at
        self._next = {last: self._next[last]}

    async def _make_room(self, connection: Connection, batch: Sequence[Entry]) -> None:
        """Go behind what is there already of the same times."""
        last = await connection.fetchval(_LAST)
        times = [at for at in {entry.at for entry in batch} - self._next.keys() if position_at(at) <= last]
        if times:
            for number, taken in await connection.fetch(_TAKEN, [position_at(at) for at in times]):
                if taken is not None:
                    self._next[times[number - 1]] = (
                        taken + 1 if (taken + 1) % (1 << TIES) else await _free(connection, taken)
                    )

    def _rows(self, entries: Iterable[Entry]) -> list[Row]:
        """Each entry once, by position: servers that write the same at once wait for each other in one direction."""
        rows: dict[Id, Row] = {}
        for entry in entries:
            row = self._row(entry)
            rows.setdefault(row.id, row)
        return sorted(rows.values(), key=lambda row: row.position)

    def _row(self, entry: Entry) -> Row:
        place, origin, epoch, seq, at, *rest = entry
        number = self._naming.places[place]
        words = words_of(number, entry.text) if entry.sort == Sort.MESSAGE else None
        line = self._naming.lines[origin, epoch]
        return Row(self._position(at), number, entry.sort, line, seq, words, tuple(rest))

    def _position(self, at: int) -> int:
        """The first position of its time, or the one behind others of this time that came just before."""
        position = self._next.get(at) or position_at(at)
        self._next[at] = position + 1
        return position

    async def _erase(self, connection: Connection, redacted: Sequence[Entry], alone: bool) -> None:
        """Leave nothing of these but their ids; of those that are not here yet, too."""
        blanks = {row.id: row for row in self._rows(redacted)}
        for found in await connection.fetch(_ERASE, *zip(*blanks, strict=True)):
            blanks.pop(tuple(found), None)
        if blanks:
            await _put(connection, list(blanks.values()), alone)


def _redacted(batch: Iterable[Entry]) -> list[Entry]:
    """What is left of the messages that are taken back."""
    found = []
    for entry in batch:
        named = split_msgid(entry.redacts) if entry.verb == "REDACT" else None
        if named is not None:
            origin, epoch, seq = named
            found.append(entry.blank()._replace(origin=origin, epoch=epoch, seq=seq))
    return found


async def _put(connection: Connection, rows: Sequence[Row], alone: bool) -> None:
    """Insert them at their positions, but for those that are there already."""
    status: str = await connection.execute(_INSERT, *zip(*(row.values() for row in rows), strict=True))
    if int(status.rpartition(" ")[2]) == len(rows):
        return
    missing = await connection.fetch(_MISSING, *zip(*(row.id for row in rows), strict=True))
    if missing and not alone:
        raise Clash
    for (number,) in missing:
        row = rows[number - 1]
        free = await _free(connection, row.position)
        await connection.execute(_INSERT, *([value] for value in row._replace(position=free).values()))


async def _free(connection: Connection, position: int) -> int:
    """The first position behind all those of the same microsecond, or of the next that has room."""
    start = position >> TIES << TIES
    while True:
        (_, taken), *_ = await connection.fetch(_TAKEN, [start])
        if taken is None:
            return start
        start += 1 << TIES
        if taken + 1 < start:
            return int(taken) + 1
