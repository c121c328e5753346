"""Reading the history's file: pages, searches, conversations."""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from culture.skills.history.entry import Entry, Sort, split_msgid
from culture.skills.history.sqlite.schema import PLACE_WORD
from culture.skills.history.store import TIES, Kept, Talk, View, position_at, time_of
from culture.skills.history.words import Query, fits

_LOOK = 2_000  # instructions of SQLite between two looks at the clock
ROW = (
    "SELECT e.position, p.key, l.origin, l.epoch, e.seq, e.verb, e.source, e.account, e.kind, e.text,"
    " e.target, e.status, e.closed, e.data FROM entries e JOIN places p ON p.id = e.place JOIN lines l ON l.id = e.line"
)
_HIGHEST = (1 << 63) - 1

Bounds = tuple[int, int]


class Reading:
    """What one connection is asked."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Give up (interrupted) what takes longer."""
        end = time.monotonic() + seconds
        self.connection.set_progress_handler(lambda: time.monotonic() > end, _LOOK)
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
        named = split_msgid(msgid)
        if named is None:
            return None
        row = self.connection.execute(
            "SELECT position FROM entries WHERE line = (SELECT id FROM lines WHERE origin = ? AND epoch = ?)"
            " AND seq = ? AND place = (SELECT id FROM places WHERE key = ?)",
            (*named, key),
        ).fetchone()
        return None if row is None else int(row[0])

    def page(self, view: View, after: int | None, before: int | None, limit: int, newest: bool) -> list[Kept]:
        """Up to so many between two positions, oldest first."""
        place = self.place(view.place)
        if place is None:
            return []
        low = max(position_at(view.since) - 1, -1 if after is None else after)
        bounds = (low, _HIGHEST if before is None else before)
        sorts = (Sort.MESSAGE, Sort.EVENT) if view.events else (Sort.MESSAGE,)
        positions = sorted(p for sort in sorts for p in self._positions(view, place, sort, bounds, limit, newest))
        return self._rows(positions[-limit:] if newest else positions[:limit])

    def _positions(self, view: View, place: int, sort: Sort, bounds: Bounds, limit: int, newest: bool) -> list[int]:
        allowed, values = _allowed(view)
        rows = self.connection.execute(
            "SELECT position FROM entries e WHERE place = ? AND sort = ? AND position > ? AND position < ?"
            f" AND {allowed} ORDER BY position {'DESC' if newest else 'ASC'} LIMIT ?",
            (place, sort, *bounds, *values, limit),
        )
        return [row[0] for row in rows]

    def _rows(self, positions: Sequence[int]) -> list[Kept]:
        found: dict[int, Kept] = {}
        for start in range(0, len(positions), 500):
            some = positions[start : start + 500]
            marks = ",".join("?" * len(some))
            for row in self.connection.execute(f"{ROW} WHERE e.position IN ({marks})", tuple(some)):
                found[row[0]] = kept(row)
        return [found[position] for position in positions if position in found]

    def get(self, view: View, positions: Sequence[int]) -> list[Kept]:
        """Those of these messages that may be seen, in the order asked for."""
        return [each for each in self._rows(positions) if is_visible(each, view)]

    def messages(self, after: int, limit: int) -> list[Kept]:
        """Up to so many messages of all channels behind a position, oldest first."""
        rows = self.connection.execute(
            f"{ROW} WHERE e.position > ? AND e.sort = ? AND p.one = '' ORDER BY e.position LIMIT ?",
            (after, Sort.MESSAGE, limit),
        )
        return [kept(row) for row in rows]

    def search(self, view: View, query: Query, limit: int) -> list[Kept]:
        """The newest messages that fit, oldest first."""
        place = self.place(view.place)
        if place is None or not (query.terms or query.needles):
            return []
        allowed, values = _allowed(view)
        if query.terms:
            match = " AND ".join([f'"{PLACE_WORD}{place}"', *map(_quoted, query.terms)])
            rows = self.connection.execute(
                f"{ROW} JOIN words w ON w.rowid = e.position WHERE w.words MATCH ? AND e.position >= ? AND {allowed}"
                " ORDER BY w.rowid DESC",
                (match, position_at(view.since), *values),
            )
        else:
            rows = self.connection.execute(
                f"{ROW} WHERE e.place = ? AND e.sort = ? AND e.position >= ? AND {allowed} ORDER BY e.position DESC",
                (place, Sort.MESSAGE, position_at(view.since), *values),
            )
        found = []
        for row in rows:
            if fits(query, row[9]):
                found.append(kept(row))
                if len(found) == limit:
                    break
        return found[::-1]

    def talks(self, party: str, since: int, channels: Sequence[View], after: int, before: int) -> list[Talk]:
        """The conversations of a party and these channels, as far as their last message is between two times."""
        found = []
        for view in channels:
            if last := self.page(view, None, None, 1, newest=True):
                found.append(Talk(last[0].entry.target, time_of(last[0].position)))
        for key, nick in self._conversations(party):
            if last := self.page(View(key, since=since), None, None, 1, newest=True):
                found.append(Talk(nick, time_of(last[0].position)))
        return sorted((talk for talk in found if after < talk.at < before), key=lambda talk: talk.at)

    def _conversations(self, party: str) -> list[tuple[str, str]]:
        return self.connection.execute(
            "SELECT key, other_nick FROM places WHERE one = ? UNION SELECT key, one_nick FROM places"
            " WHERE other = ? AND one <> other",
            (party, party),
        ).fetchall()


def kept(row: tuple[Any, ...]) -> Kept:
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


def _allowed(view: View) -> tuple[str, tuple[str | int, ...]]:
    """The same in SQL."""
    marks = ",".join("?" * len(view.ranks))
    closed = _HIGHEST if view.closed_since is None else position_at(view.closed_since)
    return f"e.status IN ({marks}) AND (e.closed = 0 OR e.position >= ?)", (*view.ranks, closed)


def _quoted(term: str) -> str:
    bare = term.removesuffix("*")
    return f'"{bare}"*' if bare != term else f'"{term}"'
