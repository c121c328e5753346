"""Writing to the database: entries in bulk, redactions, each at a position of its own."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from culture.skills.history.entry import Entry, Sort, split_msgid
from culture.skills.history.postgres import lateness
from culture.skills.history.postgres.driver import Connection
from culture.skills.history.postgres.lateness import IDS, SAME, Id, by_id
from culture.skills.history.postgres.naming import Naming
from culture.skills.history.postgres.wording import words_of
from culture.skills.history.punctuality import Punctuality
from culture.skills.history.store import OWN_TIES, position_of, time_of

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
    f"INSERT INTO history_entries ({_NAMES}, writer)"
    f" SELECT {_NAMES.replace('words', 'words::tsvector')}, ${len(_COLUMNS) + 1}::integer"
    f" FROM unnest({_ARRAYS}) AS rows ({_NAMES}) ON CONFLICT DO NOTHING RETURNING line, seq, place, position"
)
_ERASE = (
    f"UPDATE history_entries e SET sort = {Sort.REDACTED:d}, verb = '', source = '', account = NULL, kind = '',"
    f" text = '', data = '', words = NULL FROM {IDS} AS t (line, seq, place)"
    " WHERE e.line = t.line AND e.seq = t.seq AND (e.place = t.place OR 2 ="
    " (SELECT count(*) FROM history_places p WHERE p.id IN (e.place, t.place) AND p.one <> ''))"
    " RETURNING t.line, t.seq, t.place"
)
_MISSING = (
    f"SELECT t.number FROM {IDS} WITH ORDINALITY AS t (line, seq, place, number)"
    f" WHERE NOT EXISTS (SELECT FROM history_entries e WHERE {SAME}) ORDER BY t.number"
)
# One that was taken back has no text any more.
_OTHER = (
    "SELECT t.line, t.seq FROM unnest($1::integer[], $2::bigint[], $3::integer[], $4::text[])"
    " AS t (line, seq, place, text) WHERE NOT EXISTS"
    f" (SELECT FROM history_entries e WHERE {SAME} AND (e.text = t.text OR e.sort = {Sort.REDACTED:d}))"
)
_TEXT = 4  # among a row's own columns
_LAST = """
    SELECT greatest(
        -1, (SELECT max(position) FROM history_entries), (SELECT max(behind) FROM history_late WHERE writer = $1)
    )
"""
_SPAN = 1 << OWN_TIES
_TAKEN = f"""
    SELECT number, (
        SELECT max(position) FROM history_entries WHERE position >= start AND position < start + {_SPAN}
    ) FROM unnest($1::bigint[]) WITH ORDINALITY AS t (start, number)
"""


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

    def __init__(self, punctuality: Punctuality) -> None:
        self._punctuality = punctuality
        self.writer = 0  # the number of this server
        self._naming = Naming()
        self._next: dict[int, int] = {}  # first position of a server's in a microsecond → the one behind the last there

    def forget(self) -> None:
        """What is known of the tables may never have been committed."""
        self._naming.forget()
        self._next.clear()

    async def add(self, connection: Connection, batch: Sequence[Entry], *, alone: bool) -> set[str]:
        """Keep them; a Clash is nothing that could happen while we are alone.

        The ids of those that are not kept since another message has their id.
        """
        redacted = _redacted(batch)
        await self._naming.learn(connection, [*batch, *redacted])
        highest = await self._make_room(connection, batch)
        rows = self._rows(batch)
        placed = await self._put(connection, rows, alone)
        await self._note_late(connection, rows, placed, highest)
        taken = await self._taken(connection, batch, rows, placed)
        if redacted:
            await self._erase(connection, redacted, alone)
        last = position_of(batch[-1].at, batch[-1].origin)
        self._next = {last: self._next[last]}
        return taken

    async def _taken(
        self, connection: Connection, batch: Sequence[Entry], rows: Sequence[Row], placed: Mapping[Id, int]
    ) -> set[str]:
        """The ids of those messages that have another text in the table."""
        texts = {row.id: row.rest[_TEXT] for row in rows if row.sort == Sort.MESSAGE and row.id not in placed}
        if not texts:
            return set()
        found = await connection.fetch(_OTHER, *zip(*texts, strict=True), list(texts.values()))
        others = {(line, seq) for line, seq in found}
        return {each.msgid for each in batch if (self._naming.lines[each.origin, each.epoch], each.seq) in others}

    async def _make_room(self, connection: Connection, batch: Sequence[Entry]) -> int:
        """Go behind what is there already of the same times; the highest position there is."""
        last: int = await connection.fetchval(_LAST, self.writer)
        starts = {position_of(entry.at, entry.origin) for entry in batch} - self._next.keys()
        asked = [start for start in starts if start <= last]
        if asked:
            for number, taken in await connection.fetch(_TAKEN, asked):
                if taken is not None:
                    self._next[asked[number - 1]] = taken + 1 if (taken + 1) % _SPAN else await _free(connection, taken)
        return last

    def _rows(self, entries: Iterable[Entry]) -> list[Row]:
        """Each entry once."""
        rows: dict[Id, Row] = {}
        for entry in entries:
            row = self._row(entry)
            rows.setdefault(row.id, row)
        return list(rows.values())

    def _row(self, entry: Entry) -> Row:
        place, origin, epoch, seq, at, *rest = entry
        number = self._naming.places[place]
        words = words_of(number, entry.text) if entry.sort == Sort.MESSAGE else None
        line = self._naming.lines[origin, epoch]
        return Row(self._position(at, origin), number, entry.sort, line, seq, words, tuple(rest))

    def _position(self, at: int, origin: str) -> int:
        """The first position of its time and server, or the one behind others that came just before."""
        start = position_of(at, origin)
        position = self._next.get(start) or start
        self._next[start] = position + 1
        return position

    async def _erase(self, connection: Connection, redacted: Sequence[Entry], alone: bool) -> None:
        """Leave nothing of these but their ids; of those that are not here yet, too."""
        blanks = {row.id: row for row in self._rows(redacted)}
        for found in await connection.fetch(_ERASE, *zip(*blanks, strict=True)):
            blanks.pop(tuple(found), None)
        if blanks:
            await self._put(connection, list(blanks.values()), alone)

    async def _put(self, connection: Connection, rows: Sequence[Row], alone: bool) -> dict[Id, int]:
        """Insert them at their positions, but for those that are there already; where the new ones are."""
        rows = sorted(rows, key=lambda row: row.position)  # who writes the same at once waits in one direction
        placed = await self._insert(connection, rows)
        if len(placed) == len(rows):
            return placed
        missing = await connection.fetch(_MISSING, *zip(*(row.id for row in rows), strict=True))
        if missing and not alone:
            raise Clash
        for (number,) in missing:
            row = rows[number - 1]
            free = await _free(connection, row.position)
            placed |= await self._insert(connection, [row._replace(position=free)])
        return placed

    async def _insert(self, connection: Connection, rows: Sequence[Row]) -> dict[Id, int]:
        values = zip(*(row.values() for row in rows), strict=True)
        return by_id(await connection.fetch(_INSERT, *values, self.writer))

    async def _note_late(
        self, connection: Connection, rows: Sequence[Row], placed: Mapping[Id, int], highest: int
    ) -> None:
        """Remember what came late, in the order in which it came: what others wrote came so to us."""
        self._punctuality.begin()
        ids = [row.id for row in rows]
        others = await lateness.others(connection, self.writer, ids) if len(placed) < len(rows) else {}
        late: list[tuple[int, int]] = []
        for row in rows:
            position = placed.get(row.id)
            if position is None:
                late += [(others[row.id], highest)] if row.id in others else []
                continue
            if row.sort == Sort.MESSAGE and self._punctuality.is_late(time_of(position), position, highest):
                late.append((position, highest))
            highest = max(highest, position)
        if late:
            await lateness.note(connection, self.writer, self._punctuality.arrived, late)


def _redacted(batch: Iterable[Entry]) -> list[Entry]:
    """What is left of the messages that are taken back."""
    found = []
    for entry in batch:
        named = split_msgid(entry.redacts) if entry.verb == "REDACT" else None
        if named is not None:
            origin, epoch, seq = named
            found.append(entry.blank()._replace(origin=origin, epoch=epoch, seq=seq))
    return found


async def _free(connection: Connection, position: int) -> int:
    """The first position behind all those of the same server and microsecond, or where there is room next."""
    start = position >> OWN_TIES << OWN_TIES
    while True:
        (_, taken), *_ = await connection.fetch(_TAKEN, [start])
        if taken is None:
            return start
        start += _SPAN
        if taken + 1 < start:
            return int(taken) + 1
