"""Looking after the history's file: how much there is, all of it in order, whether it is whole."""

import sqlite3
from collections.abc import Iterator

from culture.skills.history.entry import Sort
from culture.skills.history.sqlite.reading import ROW, kept
from culture.skills.history.store import Kept, Stats, time_of


def places(connection: sqlite3.Connection, key: str | None) -> list[int]:
    """The number of a channel, or of every private conversation."""
    if key is None:
        rows = connection.execute("SELECT id FROM places WHERE one <> ''")
    else:
        rows = connection.execute("SELECT id FROM places WHERE key = ?", (key,))
    return [row[0] for row in rows]


def stats(connection: sqlite3.Connection) -> list[Stats]:
    """Every channel, and the private conversations together under the name ``*``."""
    rows = connection.execute(
        "SELECT CASE p.one WHEN '' THEN p.name ELSE '*' END AS shown, sum(e.sort = ?), sum(e.sort = ?),"
        " sum(length(CAST(e.text AS BLOB)) + length(CAST(e.data AS BLOB))), min(e.position), max(e.position)"
        " FROM entries e JOIN places p ON p.id = e.place GROUP BY shown ORDER BY shown",
        (Sort.MESSAGE, Sort.EVENT),
    )
    return [
        Stats(name, messages, events, size, time_of(first), time_of(last))
        for name, messages, events, size, first, last in rows
    ]


def everything(connection: sqlite3.Connection, key: str | None) -> Iterator[Kept]:
    """All entries of a place or of all places, oldest first."""
    where, values = ("", ()) if key is None else (" WHERE p.key = ?", (key,))
    for row in connection.execute(f"{ROW}{where} ORDER BY e.position", values):
        yield kept(row)


def verify(connection: sqlite3.Connection) -> Iterator[str]:
    """Each problem found: in the file itself, in what belongs together, in the index of words."""
    for (said,) in connection.execute("PRAGMA integrity_check"):
        if said != "ok":
            yield f"the file: {said}"
    for kind, column in (("place", "places"), ("line", "lines")):
        (lost,) = connection.execute(
            f"SELECT count(*) FROM entries e LEFT JOIN {column} x ON x.id = e.{kind} WHERE x.id IS NULL"
        ).fetchone()
        if lost:
            yield f"{lost} entries whose {kind} is unknown"
