"""Changing what is in the history's file: channels with another name, the removal of what is old."""

import json
import sqlite3
from collections.abc import Sequence

from culture.skills.history.entry import Sort, split_msgid
from culture.skills.history.sqlite import rows
from culture.skills.history.store import ASIDE, Gap


def move(connection: sqlite3.Connection, old: str, new: str, name: str) -> None:
    """A channel has another name; what was said in the open under that name before stays there too.

    What was said behind closed doors was another channel's, and is set aside.
    """
    found, taken = _number(connection, old), _number(connection, new)
    if found is None:
        return
    if taken is not None and taken != found:
        _set_aside(connection, taken, new)
        _merge(connection, found, taken)
        connection.execute("DELETE FROM places WHERE id = ?", (found,))
        found = taken
    connection.execute("UPDATE places SET key = ?, name = ? WHERE id = ?", (new, name, found))


def _number(connection: sqlite3.Connection, key: str) -> int | None:
    row = connection.execute("SELECT id FROM places WHERE key = ?", (key,)).fetchone()
    return None if row is None else int(row[0])


def _set_aside(connection: sqlite3.Connection, place: int, key: str) -> None:
    """Give the closed entries of a place one of their own, which no client can name."""
    closed = rows.positions(connection, "SELECT position FROM entries WHERE place = ? AND closed = 1", (place,))
    if closed:
        values = (f"{key}{ASIDE}{max(closed)}", key)
        aside = connection.execute("INSERT INTO places (key, name) VALUES (?, ?) RETURNING id", values).fetchone()[0]
        said = _said(connection, closed)
        rows.unindex(connection, said)
        connection.execute(f"UPDATE entries SET place = ? WHERE position IN {rows.GIVEN}", (aside, json.dumps(closed)))
        rows.index(connection, [(position, aside, text) for position, _, text in said])


def _merge(connection: sqlite3.Connection, source: int, into: int) -> None:
    """Put the entries of one place into another; what is in both is there once."""
    said = _said(connection, _of(connection, source))
    rows.unindex(connection, said)
    connection.execute("UPDATE OR IGNORE entries SET place = ? WHERE place = ?", (into, source))
    twice = _of(connection, source)
    rows.delete(connection, twice)
    gone = set(twice)
    rows.index(connection, [(position, into, text) for position, _, text in said if position not in gone])


def _of(connection: sqlite3.Connection, place: int) -> list[int]:
    return rows.positions(connection, "SELECT position FROM entries WHERE place = ?", (place,))


def remove(connection: sqlite3.Connection, places: Sequence[int], before: int, most: int) -> int:
    """Remove up to so many entries of these places from before a position; how many they were."""
    found: list[int] = []
    for place in places:
        found += rows.positions(
            connection,
            "SELECT position FROM entries WHERE place = ? AND sort IN (0, 1, 2) AND position < ? LIMIT ?",
            (place, before, most - len(found)),
        )
        if len(found) == most:
            break
    rows.unindex(connection, _said(connection, found))
    rows.delete(connection, found)
    return len(found)


def _said(connection: sqlite3.Connection, positions: Sequence[int]) -> list[rows.Said]:
    """The messages among some entries."""
    found = rows.columns(connection, "e.position, e.place, e.text, e.sort", "entries e", positions)
    return [(position, place, text) for position, place, text, sort in found if sort == Sort.MESSAGE]


_REOPEN = (
    "UPDATE entries SET closed = 0 WHERE closed = 1 AND status = '' AND seq = ? AND line ="
    " (SELECT id FROM lines WHERE origin = ? AND epoch = ?) AND place = (SELECT id FROM places WHERE key = ?)"
)


def reopen(connection: sqlite3.Connection, messages: Sequence[tuple[str, str]]) -> None:
    """Messages, by place and id, were said in an open channel."""
    named = [(place, split_msgid(msgid)) for place, msgid in messages]
    rows = [(id[2], id[0], id[1], place) for place, id in named if id is not None]
    connection.executemany(_REOPEN, rows)


def note_gap(connection: sqlite3.Connection, gap: Gap) -> None:
    """Remember when messages were lost."""
    connection.execute("INSERT INTO gaps (since, until, lost) VALUES (?, ?, ?)", gap)
