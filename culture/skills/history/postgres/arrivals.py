"""Reading from the database in the order in which things came to one of the servers that write it."""

from collections.abc import Sequence

from culture.skills.history.entry import Sort, split_msgid
from culture.skills.history.postgres.driver import Connection
from culture.skills.history.postgres.reading import VIEWS, asked
from culture.skills.history.postgres.rows import fitting, kept, rows_of
from culture.skills.history.punctuality import LAG
from culture.skills.history.store import Arrival, Missed, View, position_at

_MAKE_WRITER = "INSERT INTO history_writers (name) VALUES ($1) ON CONFLICT DO NOTHING"
_WRITER = "SELECT id FROM history_writers WHERE name = $1"
_LAST = "SELECT arrived FROM history_late WHERE writer = $1 ORDER BY behind DESC, number DESC LIMIT 1"
_OF = """
    SELECT p.key, coalesce(l.behind, e.position), coalesce(l.number, 0) FROM history_entries e
    JOIN history_places p ON p.id = e.place
    LEFT JOIN history_late l ON l.position = e.position AND l.writer = $1
    WHERE e.line = (SELECT id FROM history_lines WHERE origin = $2 AND epoch = $3) AND e.seq = $4
    AND (l.number IS NOT NULL OR e.writer IN (0, $1))
"""
# Times of coming never go back: behind the last from before are all the others.
_FIRST_SINCE = """
    SELECT behind, number FROM history_late WHERE writer = $1 AND (behind, number) > coalesce(
        (SELECT ROW(behind, number) FROM history_late WHERE writer = $1 AND arrived < $2
         ORDER BY behind DESC, number DESC LIMIT 1), ROW(-2::bigint, 0::bigint)
    ) ORDER BY behind, number LIMIT 1
"""
_VISIBLE = f"""
    e.sort = {Sort.MESSAGE:d} AND e.position >= v.since AND strpos(v.ranks, ' ' || e.status || ' ') > 0
    AND (NOT e.closed OR e.position >= v.closed)
"""
_MISSED = f"""
    WITH v AS (SELECT v.*, p.id AS place FROM {VIEWS} JOIN history_places p ON p.key = v.key)
    (SELECT e.position AS behind, 0::bigint AS number, e.position FROM v CROSS JOIN LATERAL (
        SELECT e.position FROM history_entries e
        WHERE e.place = v.place AND e.position > $6 AND {_VISIBLE} AND e.writer IN (0, $9)
        AND NOT EXISTS (SELECT FROM history_late l WHERE l.position = e.position AND l.writer = $9)
        ORDER BY e.position LIMIT $8
    ) e)
    UNION ALL
    (SELECT l.behind, l.number, l.position FROM history_late l JOIN history_entries e ON e.position = l.position
    JOIN v ON v.place = e.place WHERE l.writer = $9 AND (l.behind, l.number) > ($6, $7) AND {_VISIBLE}
    ORDER BY l.behind, l.number LIMIT $8)
    ORDER BY behind, number LIMIT $8
"""


async def writer(connection: Connection, name: str) -> int:
    """The number of a server."""
    found = await connection.fetchval(_WRITER, name)
    if found is None:
        await connection.execute(_MAKE_WRITER, name)
        found = await connection.fetchval(_WRITER, name)
    return int(found)


async def last(connection: Connection, writer: int) -> int:
    """The time at which the last of those came that came late."""
    return int(await connection.fetchval(_LAST, writer) or 0)


async def of(connection: Connection, writer: int, msgid: str) -> dict[str, Arrival]:
    """When a message came, by the place that it came to."""
    named = split_msgid(msgid)
    if named is None:
        return {}
    return {key: Arrival(behind, number) for key, behind, number in await connection.fetch(_OF, writer, *named)}


async def since(connection: Connection, writer: int, at: int) -> Arrival:
    """Behind this is everything that came since a time."""
    in_time = Arrival(position_at(at - LAG) - 1)
    row = await connection.fetchrow(_FIRST_SINCE, writer, fitting(at))
    return in_time if row is None else min(in_time, Arrival(row[0], row[1] - 1))


async def missed(
    connection: Connection, writer: int, views: Sequence[View], after: Arrival, limit: int
) -> list[Missed]:
    """Up to so many messages that came behind another, in the order in which they came."""
    if not views:
        return []
    columns = zip(*map(asked, views), strict=True)
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        found = await connection.fetch(_MISSED, *columns, fitting(after.behind), after.number, limit, writer)
        entries = "(SELECT * FROM history_entries WHERE position = ANY($1::bigint[]))"
        rows = await connection.fetch(rows_of(entries), [position for *_, position in found])
    known = {row[0]: kept(row) for row in rows}
    return [Missed(Arrival(behind, number), known[position]) for behind, number, position in found]
