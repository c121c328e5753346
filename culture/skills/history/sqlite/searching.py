"""Searching the history's file: the index of words, newest first, until there are enough."""

from collections.abc import Callable, Sequence

from culture.skills.history.entry import Sort
from culture.skills.history.sqlite import rows
from culture.skills.history.sqlite.reading import HIGHEST, Reading, allows
from culture.skills.history.sqlite.reindex import PLACE_WORD
from culture.skills.history.store import Kept, View, position_at
from culture.skills.history.words import Query, fits

Ask = Callable[[int], list[int]]
"""The newest positions before one that may fit, the newest first."""


def search(reading: Reading, view: View, query: Query, limit: int) -> list[Kept]:
    """The newest messages that fit, oldest first."""
    place = reading.place(view.place)
    if place is None or limit < 1 or not (query.terms or query.needles):
        return []
    ask = _asking(reading, view, query, place, limit)
    found: list[int] = []
    before = HIGHEST
    while len(found) < limit:
        positions = ask(before)
        found += _fitting(reading, positions, query)
        if len(positions) < limit:
            break
        before = positions[-1]
    return reading.rows(found[:limit])[::-1]


def _fitting(reading: Reading, positions: Sequence[int], query: Query) -> Sequence[int]:
    if not query.needles:
        return positions
    texts = dict(rows.columns(reading.connection, "e.position, e.text", "entries e", positions))
    return [position for position in positions if fits(query, texts[position])]


def _asking(reading: Reading, view: View, query: Query, place: int, limit: int) -> Ask:
    source, by, asked = _by_words(place, query.terms) if query.terms else _through_all(place)
    allowed, values = allows(view)
    likely, needles = _may_fit(query.needles)
    # The index is true of what was written; by its sort is known what was taken back since.
    select = (
        f"SELECT e.position FROM {source} AND {by} < ? AND {by} >= ? AND e.sort = {Sort.MESSAGE:d}"
        f" AND {allowed}{likely} ORDER BY {by} DESC LIMIT ?"
    )
    since = position_at(view.since)

    def ask(before: int) -> list[int]:
        found = rows.positions(reading.connection, select, (asked, before, since, *values, *needles, limit))
        return sorted(found, reverse=True)

    return ask


def _by_words(place: int, terms: Sequence[str]) -> tuple[str, str, str | int]:
    match = " AND ".join(f'"{word}"' for word in (f"{PLACE_WORD}{place}", *terms))
    # CROSS: the index comes first, in its order.
    return "words w CROSS JOIN entries e ON e.position = w.rowid WHERE w.words MATCH ?", "w.rowid", match


def _through_all(place: int) -> tuple[str, str, str | int]:
    return "entries e WHERE e.place = ?", "e.position", place


def _may_fit(needles: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """What SQLite can say of needles, so that few texts need be looked at: a text of plain ASCII has them or not."""
    other = "e.text GLOB '*[^ -~]*'"
    conditions = [
        f" AND (instr(lower(e.text), ?) OR {other})" if each.isascii() else f" AND {other}" for each in needles
    ]
    return "".join(conditions), tuple(each for each in needles if each.isascii())
