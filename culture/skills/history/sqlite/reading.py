"""Reading the history's file: pages, single messages, conversations."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from culture.runtime import REAL, Runtime
from culture.skills.history.entry import Entry, Sort, split_msgid
from culture.skills.history.sqlite import rows
from culture.skills.history.store import TIES, Kept, Talk, View, position_at, time_of

_LOOK = 20_000  # instructions of SQLite between two looks at the clock
COLUMNS = (
    "e.position, p.key, l.origin, l.epoch, e.seq, e.verb, e.source, e.account, e.kind, e.text,"
    " e.target, e.status, e.closed, e.data"
)
# CROSS: the entries come first, in their order.
SOURCE = "entries e CROSS JOIN places p ON p.id = e.place CROSS JOIN lines l ON l.id = e.line"
HIGHEST = (1 << 63) - 1
_TALKS_PATIENCE = 2.0  # seconds
_LAST = (
    f"(SELECT max(e.position) FROM entries e WHERE e.place = p.id AND e.sort = {Sort.MESSAGE:d} AND e.position >= ?2"
    " AND e.closed = 0 AND e.status = '')"
)
_CONVERSATIONS = (
    f"SELECT p.key, p.other_nick, {_LAST} FROM places p WHERE p.one = ?1 AND p.one <> '' UNION ALL"
    f" SELECT p.key, p.one_nick, {_LAST} FROM places p WHERE p.other = ?1 AND p.other <> '' AND p.one <> p.other"
)


class Reading:
    """What one connection is asked."""

    def __init__(self, connection: sqlite3.Connection, runtime: Runtime = REAL) -> None:
        self.connection = connection
        self._monotonic = runtime.monotonic

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Give up (interrupted) what takes longer."""
        monotonic = self._monotonic
        end = monotonic() + seconds
        self.connection.set_progress_handler(lambda: monotonic() > end, _LOOK)
        try:
            yield
        finally:
            self.connection.set_progress_handler(None, 0)

    def place(self, key: str) -> int | None:
        """The number of a place."""
        row = self.connection.execute("SELECT id FROM places WHERE key = ?", (key,)).fetchone()
        return None if row is None else int(row[0])

    def position(self, key: str, msgid: str) -> int | None:
        """Where a message is."""
        return self._position(key, msgid, "TRUE", ())

    def locate(self, view: View, msgid: str) -> int | None:
        """The same, if the reader may know of it."""
        allowed, values = allows(view)
        return self._position(view.place, msgid, f"e.position >= ? AND {allowed}", (position_at(view.since), *values))

    def _position(self, key: str, msgid: str, allowed: str, values: Sequence[str | int]) -> int | None:
        named = split_msgid(msgid)
        if named is None:
            return None
        row = self.connection.execute(
            "SELECT e.position FROM entries e WHERE e.line = (SELECT id FROM lines WHERE origin = ? AND epoch = ?)"
            f" AND e.seq = ? AND e.place = (SELECT id FROM places WHERE key = ?) AND {allowed}",
            (*named, key, *values),
        ).fetchone()
        return None if row is None else int(row[0])

    def page(self, view: View, after: int | None, before: int | None, limit: int, newest: bool) -> list[Kept]:
        """Up to so many between two positions, oldest first."""
        return self.rows(self._page(view, after, before, limit, newest))

    def _page(self, view: View, after: int | None, before: int | None, limit: int, newest: bool) -> list[int]:
        place = self.place(view.place)
        if place is None or limit < 1:
            return []
        low = max(position_at(view.since) - 1, -1 if after is None else after)
        high = HIGHEST if before is None else before
        allowed, values = allows(view)
        select = (
            "SELECT e.position FROM entries e WHERE e.place = ? AND e.sort = ? AND e.position > ? AND e.position < ?"
            f" AND {allowed} ORDER BY e.position {'DESC' if newest else 'ASC'} LIMIT ?"
        )
        found: list[int] = []
        for sort in (Sort.MESSAGE, Sort.EVENT) if view.events else (Sort.MESSAGE,):
            found += rows.positions(self.connection, select, (place, sort, low, high, *values, limit))
        found.sort()
        return found[-limit:] if newest else found[:limit]

    def rows(self, positions: Sequence[int]) -> list[Kept]:
        """The entries at these positions, in the same order."""
        found = {row[0]: kept(row) for row in rows.columns(self.connection, COLUMNS, SOURCE, positions)}
        return [found[position] for position in positions if position in found]

    def get(self, view: View, positions: Sequence[int]) -> list[Kept]:
        """Those of these messages that may be seen, in the order asked for."""
        return [each for each in self.rows(positions) if is_visible(each, view)]

    def messages(self, after: int, limit: int) -> list[Kept]:
        """Up to so many messages of all channels behind a position, oldest first."""
        select = (
            "SELECT e.position FROM entries e CROSS JOIN places p ON p.id = e.place"
            " WHERE e.position > ? AND e.sort = ? AND p.one = '' ORDER BY e.position LIMIT ?"
        )
        return self.rows(sorted(rows.positions(self.connection, select, (after, Sort.MESSAGE, limit))))

    def talks(self, party: str, since: int, channels: Sequence[View], after: int, before: int) -> list[Talk]:
        """The conversations of a party and these channels, as far as their last message is between two times."""
        with self.within(_TALKS_PATIENCE):
            found = [
                Talk(self._name(view.place), time_of(position), view.place)
                for view in channels
                for position in self._page(view._replace(events=False), None, None, 1, newest=True)
            ]
            found += self._conversations(party, since)
        return sorted((talk for talk in found if after < talk.at < before), key=lambda talk: talk.at)

    def _name(self, key: str) -> str:
        row = self.connection.execute("SELECT name FROM places WHERE key = ?", (key,)).fetchone()
        return key if row is None else str(row[0])

    def _conversations(self, party: str, since: int) -> list[Talk]:
        if not party:
            return []
        found = self.connection.execute(_CONVERSATIONS, (party, position_at(since))).fetchall()
        return [Talk(nick, time_of(last), key) for key, nick, last in found if last is not None]


def kept(row: Sequence[Any]) -> Kept:
    """A row as it is read."""
    position, place, origin, epoch, seq, verb, source, account, kind, text, target, status, closed, data = row
    line = (origin, epoch, seq, position >> TIES)
    return Kept(position, Entry(place, *line, verb, source, account, kind, text, target, status, bool(closed), data))


def is_visible(each: Kept, view: View) -> bool:
    """May a reader with this view see it?"""
    entry = each.entry
    return (
        entry.place == view.place
        and entry.sort == Sort.MESSAGE
        and entry.status in view.ranks
        and entry.at >= view.since
        and (not entry.closed or (view.closed_since is not None and entry.at >= view.closed_since))
    )


def allows(view: View) -> tuple[str, tuple[str | int, ...]]:
    """What of it SQLite can ask of each row, and the values for that."""
    marks = ",".join("?" * len(view.ranks))
    closed = HIGHEST if view.closed_since is None else position_at(view.closed_since)
    return f"e.status IN ({marks}) AND (e.closed = 0 OR e.position >= ?)", (*view.ranks, closed)
