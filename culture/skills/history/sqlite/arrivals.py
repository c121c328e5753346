"""Reading the history's file in the order in which things came to it."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from culture.skills.history.entry import Sort, split_msgid
from culture.skills.history.punctuality import LAG
from culture.skills.history.sqlite import rows
from culture.skills.history.sqlite.reading import HIGHEST, Reading, allows
from culture.skills.history.store import Arrival, Missed, View, position_at

_OF = (
    "SELECT p.key, coalesce(l.behind, e.position), coalesce(l.number, 0) FROM entries e"
    " JOIN places p ON p.id = e.place LEFT JOIN late l ON l.position = e.position"
    " WHERE e.line = (SELECT id FROM lines WHERE origin = ? AND epoch = ?) AND e.seq = ?"
)
# Times of coming never go back: behind the last from before are all the others.
_FIRST_SINCE = (
    "SELECT behind, number FROM late WHERE number >"
    " coalesce((SELECT number FROM late WHERE arrived < ? ORDER BY number DESC LIMIT 1), 0) ORDER BY number LIMIT 1"
)
_LATE = (
    "SELECT l.behind, l.number, l.position, e.place, e.status, e.closed FROM late l"
    " CROSS JOIN entries e ON e.position = l.position WHERE (l.behind, l.number) > (?, ?)"
    f" AND e.sort = {Sort.MESSAGE:d} AND e.place IN {rows.GIVEN} ORDER BY l.behind, l.number"
)


def last(connection: sqlite3.Connection) -> int:
    """The time at which the last of those came that came late."""
    row = connection.execute("SELECT arrived FROM late ORDER BY number DESC LIMIT 1").fetchone()
    return 0 if row is None else int(row[0])


def of(reading: Reading, msgid: str) -> dict[str, Arrival]:
    """When a message came, by the place that it came to."""
    named = split_msgid(msgid)
    if named is None:
        return {}
    return {key: Arrival(behind, number) for key, behind, number in reading.connection.execute(_OF, named)}


def since(reading: Reading, at: int) -> Arrival:
    """Behind this is everything that came since a time."""
    in_time = Arrival(position_at(at - LAG) - 1)
    row = reading.connection.execute(_FIRST_SINCE, (min(at, HIGHEST),)).fetchone()
    return in_time if row is None else min(in_time, Arrival(row[0], row[1] - 1))


def missed(reading: Reading, views: Sequence[View], after: Arrival, limit: int) -> list[Missed]:
    """Up to so many messages that came behind another, in the order in which they came."""
    known = {place: view for view in views if (place := reading.place(view.place)) is not None}
    found = [
        (Arrival(position), position)
        for place, view in known.items()
        for position in _in_time(reading, place, view, after.behind, limit)
    ]
    found += _late(reading, known, after, limit)
    found = sorted(found)[:limit]
    kept = reading.rows([position for _, position in found])
    return [Missed(arrival, each) for (arrival, _), each in zip(found, kept, strict=True)]


def _in_time(reading: Reading, place: int, view: View, after: int, limit: int) -> list[int]:
    allowed, values = allows(view)
    select = (
        f"SELECT e.position FROM entries e WHERE e.place = ? AND e.sort = {Sort.MESSAGE:d} AND e.position > ?"
        f" AND {allowed} AND NOT EXISTS (SELECT 1 FROM late l WHERE l.position = e.position)"
        " ORDER BY e.position LIMIT ?"
    )
    low = max(position_at(view.since) - 1, after)
    return rows.positions(reading.connection, select, (place, low, *values, limit))


def _late(reading: Reading, known: Mapping[int, View], after: Arrival, limit: int) -> Iterator[tuple[Arrival, int]]:
    count = 0
    for behind, number, position, place, *how in reading.connection.execute(_LATE, (*after, json.dumps([*known]))):
        if _is_allowed(known[place], position, *how):
            yield Arrival(behind, number), position
            count += 1
            if count == limit:
                return


def _is_allowed(view: View, position: int, status: str, closed: int) -> bool:
    closed_since = HIGHEST if view.closed_since is None else position_at(view.closed_since)
    return status in view.ranks and position >= position_at(view.since) and (not closed or position >= closed_since)
