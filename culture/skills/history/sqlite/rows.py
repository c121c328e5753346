"""Rows in bulk: many of them in one statement, and as one answer.

While SQLite works the other threads do; what went back and forth for each row would wait for its turn as often.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

from culture.server.database import pieces
from culture.skills.history.entry import Sort
from culture.skills.history.sqlite.reindex import PLACE_WORD
from culture.skills.history.sqlite.schema import COLUMNS
from culture.skills.history.words import indexed

Row = tuple[int, int, int, int, int, str, str, str, str, str, str, str, int, str]
"""What COLUMNS names; who has no account has an empty one."""
Said = tuple[int, int, str]
"""Position, place and text of a message."""

GIVEN = "(SELECT value FROM json_each(?))"
"""The numbers in a list that is given as JSON."""
# Python's module asks every None, bool and enum how it wants to be kept, which takes as long as the rest of the row:
# so rows are of numbers and texts alone.
_VALUES = ("nullif(?, '')" if name == "account" else "?" for name in COLUMNS.split(", "))
_ROW = f"({','.join(_VALUES)})"
# The index writes out what it has gathered before each statement of several rows: so all go in one.
_INDEX = "INSERT INTO words (rowid, text) SELECT CAST(key AS INTEGER), value FROM json_each(?)"
_UNINDEX = "INSERT INTO words (words, rowid, text) SELECT 'delete', CAST(key AS INTEGER), value FROM json_each(?)"
_NOTE = (
    "INSERT INTO late (position, behind, arrived)"
    " SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), ? FROM json_each(?)"
)


# One that was taken back has no text any more.
_OTHER = f"SELECT 1 FROM entries WHERE line = ? AND seq = ? AND place = ? AND (text = ? OR sort = {Sort.REDACTED:d})"


@cache
def _insert(rows: int) -> str:
    return f"INSERT INTO entries ({COLUMNS}) VALUES {','.join([_ROW] * rows)} ON CONFLICT (line, seq, place) DO NOTHING"


def insert(connection: sqlite3.Connection, rows: Sequence[Row]) -> list[Row]:
    """Insert those whose ids are new, at positions that are free; which they were."""
    inserted: list[Row] = []
    for some in pieces(rows):
        before = connection.total_changes
        connection.execute(_insert(len(some)), tuple(chain.from_iterable(some)))
        if connection.total_changes - before == len(some):
            inserted += some
        else:
            there = _there(connection, [row[0] for row in some])
            inserted += [row for row in some if row[0] in there]
    return inserted


def taken(connection: sqlite3.Connection, some: Iterable[Row]) -> Iterator[str]:
    """The ids of those messages that have another text in the file, or none."""
    for row in some:
        place, line, seq, text = row[1], row[3], row[4], row[9]
        if connection.execute(_OTHER, (line, seq, place, text)).fetchone() is None:
            origin, epoch = connection.execute("SELECT origin, epoch FROM lines WHERE id = ?", (line,)).fetchone()
            yield f"{origin}.{epoch}.{seq}"


def _there(connection: sqlite3.Connection, some: Sequence[int]) -> set[int]:
    return set(positions(connection, f"SELECT position FROM entries WHERE position IN {GIVEN}", (json.dumps(some),)))


def positions(connection: sqlite3.Connection, select: str, values: Sequence[str | int]) -> list[int]:
    """The positions that a query gives."""
    (found,) = connection.execute(f"SELECT json_group_array(position) FROM ({select})", values).fetchone()
    return list(json.loads(found))


def columns(connection: sqlite3.Connection, names: str, source: str, some: Sequence[int]) -> list[list[Any]]:
    """These columns of the entries (``e``) at some positions, in any order."""
    (found,) = connection.execute(
        f"SELECT json_group_array(json_array({names})) FROM {source} WHERE e.position IN {GIVEN}", (json.dumps(some),)
    ).fetchone()
    return list(json.loads(found))


def delete(connection: sqlite3.Connection, some: Sequence[int]) -> None:
    """Remove the entries at some positions."""
    connection.execute(f"DELETE FROM entries WHERE position IN {GIVEN}", (json.dumps(some),))


def note(connection: sqlite3.Connection, late: Sequence[tuple[int, int]], arrived: int) -> None:
    """Remember of entries that came late, each with its position, behind what they came."""
    connection.execute(_NOTE, (arrived, json.dumps(late)))


def index(connection: sqlite3.Connection, said: Iterable[Said]) -> None:
    """Let messages be found."""
    _tell(connection, _INDEX, said)


def unindex(connection: sqlite3.Connection, said: Iterable[Said]) -> None:
    """Take messages out of the index, which has to be told again what it knew of them."""
    _tell(connection, _UNINDEX, said)


def _tell(connection: sqlite3.Connection, what: str, said: Iterable[Said]) -> None:
    # In the order of their positions: for one that comes after a later one, too, all gathered is written out.
    known = {position: words_of(place, text) for position, place, text in sorted(said)}
    if known:
        connection.execute(what, (json.dumps(known, ensure_ascii=False),))


def words_of(place: int, text: str) -> str:
    """What the index knows of a message: where it was said, and its words."""
    return f"{PLACE_WORD}{place} {indexed(text)}"
