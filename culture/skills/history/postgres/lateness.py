"""Noting what came late to one of the servers that write the database."""

from collections.abc import Iterable, Sequence

from culture.skills.history.entry import Sort
from culture.skills.history.postgres.driver import Connection, Record

Id = tuple[int, int, int]
"""The line, number and place of an entry."""

IDS = "unnest($1::integer[], $2::bigint[], $3::integer[])"
"""The ids that are given, as a table."""
SAME = "e.line = t.line AND e.seq = t.seq AND e.place = t.place"
"""Is it the entry of the id?"""
_OTHERS = (
    f"SELECT e.line, e.seq, e.place, e.position FROM {IDS} AS t (line, seq, place) JOIN history_entries e ON {SAME}"
    f" WHERE e.sort = {Sort.MESSAGE:d} AND e.writer NOT IN (0, $4)"
    " AND NOT EXISTS (SELECT FROM history_late l WHERE l.position = e.position AND l.writer = $4)"
)
_NOTE = (
    "INSERT INTO history_late (writer, position, behind, arrived) SELECT $1, t.position, t.behind, $2"
    " FROM unnest($3::bigint[], $4::bigint[]) WITH ORDINALITY AS t (position, behind, number) ORDER BY t.number"
)


async def others(connection: Connection, writer: int, ids: Iterable[Id]) -> dict[Id, int]:
    """Where the messages are among these that another server wrote, and that come to this one for the first time."""
    return by_id(await connection.fetch(_OTHERS, *zip(*ids, strict=True), writer))


async def note(connection: Connection, writer: int, arrived: int, late: Sequence[tuple[int, int]]) -> None:
    """Remember of messages, each with its position, behind what they came, in this order."""
    await connection.execute(_NOTE, writer, arrived, *zip(*late, strict=True))


def by_id(rows: Iterable[Record]) -> dict[Id, int]:
    """Positions by id."""
    return {(line, seq, place): position for line, seq, place, position in rows}
