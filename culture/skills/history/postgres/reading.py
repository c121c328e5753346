"""Reading from the database: pages, single messages, conversations."""

from collections.abc import Sequence

from culture.skills.history.entry import Sort, split_msgid
from culture.skills.history.postgres.driver import Connection
from culture.skills.history.postgres.rows import HIGHEST, Values, allowed, fitting, kept, kept_all, rows_of
from culture.skills.history.store import Kept, Talk, TooSlow, View, position_at, time_of

_OF_PLACE = "(SELECT id FROM history_places WHERE key = {})"
_TALKS_PATIENCE = 2.0  # seconds
_LAST = """
    SELECT e.position FROM history_entries e WHERE e.place = p.id AND e.sort = {sort:d} AND e.position >= v.since
    AND strpos(v.ranks, ' ' || e.status || ' ') > 0 AND (NOT e.closed OR e.position >= v.closed)
    AND v.events >= {sort:d} ORDER BY e.position DESC LIMIT 1
"""
VIEWS = """
    unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::integer[]) AS v (key, ranks, closed, since, events)
"""
"""What ``asked`` says of views, as a table."""
_TALKS = f"""
    SELECT p.key, p.name, e.position
    FROM {VIEWS}
    JOIN history_places p ON p.key = v.key
    CROSS JOIN LATERAL (
        ({_LAST.format(sort=Sort.MESSAGE)}) UNION ALL ({_LAST.format(sort=Sort.EVENT)}) ORDER BY position DESC LIMIT 1
    ) e
"""
_CONVERSATIONS = (
    "SELECT key, other_nick FROM history_places WHERE one = $1 AND one <> ''"
    " UNION SELECT key, one_nick FROM history_places WHERE other = $1 AND other NOT IN ('', one)"
)


async def page(
    connection: Connection, view: View, after: int | None, before: int | None, limit: int, newest: bool
) -> list[Kept]:
    """Up to so many between two positions, oldest first."""
    values = Values()
    low = -1 if after is None else fitting(after)
    high = HIGHEST if before is None else fitting(before)
    place = _OF_PLACE.format(values(view.place))
    bounds = f"e.position > {values(low)} AND e.position < {values(high)} AND {allowed(view, values)}"
    order = f"ORDER BY position {'DESC' if newest else 'ASC'} LIMIT {values(limit)}"
    of_sort = f"(SELECT * FROM history_entries e WHERE e.place = {place} AND e.sort = %d AND {bounds} {order})"
    entries = of_sort % Sort.MESSAGE
    if view.events:
        entries = f"(SELECT * FROM ({entries} UNION ALL {of_sort % Sort.EVENT}) e {order})"
    return kept_all(await connection.fetch(rows_of(entries), *values))


async def position(connection: Connection, place: str, msgid: str) -> int | None:
    """Where a message is."""
    return await _position(connection, place, msgid, Values(), "TRUE")


async def locate(connection: Connection, view: View, msgid: str) -> int | None:
    """The same, if the reader may know of it."""
    values = Values()
    return await _position(connection, view.place, msgid, values, allowed(view, values))


async def _position(connection: Connection, place: str, msgid: str, values: Values, may_know: str) -> int | None:
    named = split_msgid(msgid)
    if named is None:
        return None
    origin, epoch, seq = named
    line = f"(SELECT id FROM history_lines WHERE origin = {values(origin)} AND epoch = {values(epoch)})"
    found: int | None = await connection.fetchval(
        f"SELECT e.position FROM history_entries e WHERE e.line = {line} AND e.seq = {values(seq)}"
        f" AND e.place = {_OF_PLACE.format(values(place))} AND {may_know}",
        *values,
    )
    return found


async def get(connection: Connection, view: View, positions: Sequence[int]) -> list[Kept]:
    """Those of these messages that may be seen, in the order asked for."""
    values = Values()
    wanted = values([each for each in positions if 0 <= each <= HIGHEST])
    entries = (
        f"(SELECT * FROM history_entries e WHERE e.position = ANY({wanted}) AND e.sort = {Sort.MESSAGE:d}"
        f" AND e.place = {_OF_PLACE.format(values(view.place))} AND {allowed(view, values)})"
    )
    found = {row[0]: kept(row) for row in await connection.fetch(rows_of(entries), *values)}
    return [found[each] for each in positions if each in found]


async def messages(connection: Connection, after: int, limit: int) -> list[Kept]:
    """Up to so many messages of all channels behind a position, oldest first."""
    entries = (
        f"(SELECT e.* FROM history_entries e JOIN history_places c ON c.id = e.place WHERE e.position > $1"
        f" AND e.sort = {Sort.MESSAGE:d} AND c.one = '' ORDER BY e.position LIMIT $2)"
    )
    return kept_all(await connection.fetch(rows_of(entries), fitting(after), limit))


async def talks(
    connection: Connection, party: str, since: int, channels: Sequence[View], after: int, before: int
) -> list[Talk]:
    """The conversations of a party and these channels, as far as their last message is between two times."""
    nicks = dict(await connection.fetch(_CONVERSATIONS, party))
    views = [*channels, *(View(key, since=since) for key in nicks)]
    if not views:
        return []
    try:
        rows = await connection.fetch(_TALKS, *zip(*map(asked, views), strict=True), timeout=_TALKS_PATIENCE)
    except TimeoutError as error:
        raise TooSlow from error
    found = [Talk(nicks.get(key, name), time_of(last), key) for key, name, last in rows]
    return sorted((talk for talk in found if after < talk.at < before), key=lambda talk: talk.at)


def asked(view: View) -> tuple[str, str, int, int, int]:
    """What a view lets see, as a row."""
    closed = HIGHEST if view.closed_since is None else position_at(view.closed_since)
    ranks = "".join(f" {rank} " for rank in view.ranks)
    return view.place, ranks, closed, position_at(view.since), int(view.events)


async def exists(connection: Connection, place: str) -> bool:
    """Was anything ever kept there?"""
    return bool(await connection.fetchval(f"SELECT {_OF_PLACE.format('$1')} IS NOT NULL", place))
