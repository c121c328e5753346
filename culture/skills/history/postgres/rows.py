"""Rows of the tables, and what a reader may see of them."""

from collections.abc import Sequence
from typing import Any

from culture.skills.history.entry import Entry
from culture.skills.history.postgres.driver import Record
from culture.skills.history.store import TIES, Kept, View, position_at

HIGHEST = (1 << 63) - 1
_FIELDS = (
    "e.position, p.key, l.origin, l.epoch, e.seq, e.verb, e.source, e.account, e.kind, e.text,"
    " e.target, e.status, e.closed, e.data"
)


class Values(list[Any]):
    """The values of a statement."""

    def __call__(self, value: object) -> str:
        """Add one; how the statement names it."""
        self.append(value)
        return f"${len(self)}"


def rows_of(entries: str, order: str = "ASC") -> str:
    """The statement for the rows of these entries (a table or a statement in brackets), by position."""
    return (
        f"SELECT {_FIELDS} FROM {entries} e JOIN history_places p ON p.id = e.place"
        f" JOIN history_lines l ON l.id = e.line ORDER BY e.position {order}"
    )


def kept(row: Record) -> Kept:
    """A row as it is read."""
    position, place, origin, epoch, seq, *rest = row
    return Kept(position, Entry(place, origin, epoch, seq, position >> TIES, *rest))


def kept_all(rows: Sequence[Record]) -> list[Kept]:
    """Rows as they are read."""
    return [kept(row) for row in rows]


def fitting(position: int) -> int:
    """A position that the database can compare with."""
    return max(-1, min(position, HIGHEST))


def allowed(view: View, values: Values) -> str:
    """What of a place's entries a reader may see, whichever sort they are."""
    closed = HIGHEST if view.closed_since is None else position_at(view.closed_since)
    return (
        f"e.position >= {values(position_at(view.since))} AND e.status = ANY({values(list(view.ranks))})"
        f" AND (NOT e.closed OR e.position >= {values(closed)})"
    )
