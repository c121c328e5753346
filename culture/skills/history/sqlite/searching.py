"""Searching the history's file: the index of words, newest first, a handful of messages at a time."""

from collections.abc import Callable, Sequence

from culture.skills.history.entry import Sort
from culture.skills.history.sqlite import rows
from culture.skills.history.sqlite.reading import HIGHEST, Reading, allows
from culture.skills.history.sqlite.schema import PLACE_WORD
from culture.skills.history.store import Kept, View, position_at
from culture.skills.history.words import Query, fits

_FIRST, _MOST = 100, 5_000  # looked at in one go, when there are needles to be looked for

Ask = Callable[[int, int], list[int]]
"""The newest positions that may fit, before one of them; up to so many."""


def search(reading: Reading, view: View, query: Query, limit: int) -> list[Kept]:
    """The newest messages that fit, oldest first."""
    place = reading.place(view.place)
    if place is None or not (query.terms or query.needles):
        return []
    ask = _by_words(reading, view, query, place) if query.terms else _all(reading, view, place)
    if not query.needles:
        return reading.rows(sorted(ask(HIGHEST, limit)))
    return _look(reading, ask, query, limit)


def _look(reading: Reading, ask: Ask, query: Query, limit: int) -> list[Kept]:
    found: list[Kept] = []
    before, size = HIGHEST, _FIRST
    while len(found) < limit:
        positions = sorted(ask(before, size), reverse=True)
        found += reading.rows(_fitting(reading, positions, query)[: limit - len(found)])
        if len(positions) < size:
            break
        before, size = positions[-1], min(size * 2, _MOST)
    return found[::-1]


def _fitting(reading: Reading, positions: Sequence[int], query: Query) -> list[int]:
    texts = dict(rows.columns(reading.connection, "e.position, e.text", "entries e", positions))
    return [position for position in positions if fits(query, texts[position])]


def _by_words(reading: Reading, view: View, query: Query, place: int) -> Ask:
    allowed, values = allows(view)
    match = " AND ".join(f'"{word}"' for word in (f"{PLACE_WORD}{place}", *query.terms))
    # CROSS: the index comes first. The sort is asked for too, since all that is known of the index is that it is true
    # of what was written.
    select = (
        "SELECT e.position FROM words w CROSS JOIN entries e ON e.position = w.rowid WHERE w.words MATCH ?"
        f" AND w.rowid < ? AND w.rowid >= ? AND e.sort = ? AND {allowed} ORDER BY w.rowid DESC LIMIT ?"
    )
    since = position_at(view.since)
    return lambda before, limit: rows.positions(
        reading.connection, select, (match, before, since, Sort.MESSAGE, *values, limit)
    )


def _all(reading: Reading, view: View, place: int) -> Ask:
    allowed, values = allows(view)
    select = (
        "SELECT e.position FROM entries e WHERE e.place = ? AND e.sort = ? AND e.position < ? AND e.position >= ?"
        f" AND {allowed} ORDER BY e.position DESC LIMIT ?"
    )
    since = position_at(view.since)
    return lambda before, limit: rows.positions(
        reading.connection, select, (place, Sort.MESSAGE, before, since, *values, limit)
    )
