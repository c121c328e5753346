"""Looking after the history: how much there is, all of it in order, moves, the removal of what is old."""

from collections.abc import AsyncGenerator, Sequence

from culture.skills.history.entry import Sort, split_msgid
from culture.skills.history.postgres.driver import Connection
from culture.skills.history.postgres.rows import kept_all, rows_of
from culture.skills.history.postgres.wording import PLACE_WORD
from culture.skills.history.store import ASIDE, Gap, Kept, Stats, position_at, time_of

LONG = 3600.0  # seconds that looking through everything may take
AT_ONCE = 1_000

_PLACES = (
    "SELECT id FROM history_places WHERE CASE WHEN $1::text IS NULL THEN one <> ''"
    f" ELSE key = $1 OR starts_with(key, $1 || chr({ord(ASIDE)})) END"
)
_SIZE = "octet_length(e.text) + octet_length(e.data)"
_STATS = f"""
    SELECT CASE p.one WHEN '' THEN p.name ELSE '*' END COLLATE "C" AS shown,
        count(*) FILTER (WHERE e.sort = {Sort.MESSAGE:d}), count(*) FILTER (WHERE e.sort = {Sort.EVENT:d}),
        sum({_SIZE})::bigint, min(e.position), max(e.position)
    FROM history_entries e JOIN history_places p ON p.id = e.place GROUP BY shown ORDER BY shown
"""
_CUTOFF = f"""
    SELECT max(position) FROM (
        SELECT e.position, sum({_SIZE}) OVER (ORDER BY e.position DESC) AS total
        FROM history_entries e WHERE e.place IN ({_PLACES})
    ) e WHERE total > $2
"""
_REMOVE = f"""
    DELETE FROM history_entries WHERE position IN (
        SELECT position FROM history_entries
        WHERE place IN ({_PLACES}) AND sort IN ({", ".join(str(int(sort)) for sort in Sort)}) AND position < $2 LIMIT $3
    )
"""
_MERGE = """
    UPDATE history_entries SET place = $2, words = ts_delete(words, $3) || array_to_tsvector(ARRAY[$4::text])
    WHERE place = $1
"""
_ASIDE = """
    INSERT INTO history_places (key, name)
    SELECT $2::text || $3 || max(position), $2 FROM history_entries WHERE place = $1 AND closed HAVING count(*) > 0
    RETURNING id
"""
_REOPEN = """
    UPDATE history_entries e SET closed = false
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS t (key, origin, epoch, seq)
        JOIN history_places p ON p.key = t.key JOIN history_lines l ON l.origin = t.origin AND l.epoch = t.epoch
    WHERE e.line = l.id AND e.seq = t.seq AND e.place = p.id AND e.closed AND e.status = ''
"""
_REPEATED = """
    DELETE FROM history_entries e USING history_entries o
    WHERE e.place = $1 AND o.place = $2 AND o.line = e.line AND o.seq = e.seq
"""


async def stats(connection: Connection) -> list[Stats]:
    """Every channel, and the private conversations together under the name ``*``."""
    return [
        Stats(name, messages, events, size, time_of(first), time_of(last))
        for name, messages, events, size, first, last in await connection.fetch(_STATS, timeout=LONG)
    ]


async def everything(connection: Connection, place: str | None) -> AsyncGenerator[list[Kept], None]:
    """All entries of a place or of all places, oldest first, some at a time."""
    entries, values = "history_entries", []
    if place is not None:
        entries = "(SELECT * FROM history_entries WHERE place = (SELECT id FROM history_places WHERE key = $1))"
        values = [place]
    async with connection.transaction(readonly=True):
        cursor = await connection.cursor(rows_of(entries), *values, timeout=LONG)
        while rows := await cursor.fetch(AT_ONCE, timeout=LONG):
            yield kept_all(rows)


async def cutoff(connection: Connection, place: str | None, most: int) -> int | None:
    """The time before which there is too much; None where there is not."""
    found = await connection.fetchval(_CUTOFF, place, most, timeout=LONG)
    return None if found is None else time_of(found) + 1


async def reopen(connection: Connection, messages: Sequence[tuple[str, str]]) -> None:
    """Messages, by place and id, were said in an open channel."""
    rows = [(place, *id) for place, msgid in messages if (id := split_msgid(msgid)) is not None]
    if rows:
        await connection.execute(_REOPEN, *zip(*rows, strict=True))


async def remove(connection: Connection, place: str | None, before: int) -> int:
    """Remove some entries from before a time; how many."""
    status: str = await connection.execute(_REMOVE, place, position_at(before), AT_ONCE)
    return int(status.rpartition(" ")[2])


async def move(connection: Connection, old: str, new: str, name: str) -> None:
    """A channel has another name; what was said under that name before stays, in the open there, else set aside."""
    find = "SELECT id FROM history_places WHERE key = $1"
    found, taken = await connection.fetchval(find, old), await connection.fetchval(find, new)
    if found is None:
        return
    if taken is not None and taken != found:
        aside = await connection.fetchval(_ASIDE, taken, new, ASIDE, timeout=LONG)
        if aside is not None:
            words = f"{PLACE_WORD}{taken}", f"{PLACE_WORD}{aside}"
            await connection.execute(f"{_MERGE} AND closed", taken, aside, *words, timeout=LONG)
        await connection.execute(_REPEATED, found, taken, timeout=LONG)
        await connection.execute(_MERGE, found, taken, f"{PLACE_WORD}{found}", f"{PLACE_WORD}{taken}", timeout=LONG)
        await connection.execute("DELETE FROM history_places WHERE id = $1", found)
        found = taken
    await connection.execute("UPDATE history_places SET key = $2, name = $3 WHERE id = $1", found, new, name)


async def note_gap(connection: Connection, since: int, until: int, lost: int) -> None:
    """Between two times so many messages were lost."""
    await connection.execute("INSERT INTO history_gaps VALUES ($1, $2, $3)", since, until, lost)


async def gaps(connection: Connection) -> list[Gap]:
    """When messages were lost, the oldest first."""
    return [Gap(*row) for row in await connection.fetch("SELECT * FROM history_gaps ORDER BY since, until")]
