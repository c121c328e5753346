"""Looking after the history's file: how much there is, all of it in order, whether it is whole."""

import sqlite3
from collections.abc import Iterator

from culture.skills.history.entry import Sort
from culture.skills.history.sqlite.reading import COLUMNS, SOURCE, kept
from culture.skills.history.sqlite.reindex import PLACE_WORD
from culture.skills.history.store import ASIDE, Gap, Kept, Stats, time_of
from culture.skills.history.words import words

_SIZE = "length(CAST(e.text AS BLOB)) + length(CAST(e.data AS BLOB))"


def places(connection: sqlite3.Connection, key: str | None) -> list[int]:
    """The numbers of a channel and of what was set aside from its name, or of every private conversation."""
    which, values = _which(key)
    return [row[0] for row in connection.execute(f"SELECT p.id FROM places p WHERE {which}", values)]


def _which(key: str | None) -> tuple[str, tuple[str, ...]]:
    if key is None:
        return "p.one <> ''", ()
    return "(p.key = ? OR p.key > ? AND p.key < ?)", (key, f"{key}{ASIDE}", f"{key}{chr(ord(ASIDE) + 1)}")


def stats(connection: sqlite3.Connection) -> list[Stats]:
    """Every channel, and the private conversations together under the name ``*``."""
    rows = connection.execute(
        f"SELECT CASE p.one WHEN '' THEN p.name ELSE '*' END AS shown, sum(e.sort = ?), sum(e.sort = ?), sum({_SIZE}),"
        " min(e.position), max(e.position) FROM entries e JOIN places p ON p.id = e.place"
        " GROUP BY shown ORDER BY shown",
        (Sort.MESSAGE, Sort.EVENT),
    )
    return [
        Stats(name, messages, events, size, time_of(first), time_of(last))
        for name, messages, events, size, first, last in rows
    ]


def cutoff(connection: sqlite3.Connection, key: str | None, size: int) -> int | None:
    """The time before which a place, or all private conversations, has more than so many bytes."""
    which, values = _which(key)
    row = connection.execute(
        f"SELECT max(position) FROM (SELECT e.position, sum({_SIZE}) OVER (ORDER BY e.position DESC) AS total"
        f" FROM entries e JOIN places p ON p.id = e.place WHERE {which}) WHERE total > ?",
        (*values, size),
    ).fetchone()
    return None if row[0] is None else time_of(row[0]) + 1


def gaps(connection: sqlite3.Connection) -> list[Gap]:
    """When messages were lost, the oldest first."""
    return [Gap(*row) for row in connection.execute("SELECT since, until, lost FROM gaps ORDER BY since, until")]


def everything(connection: sqlite3.Connection, key: str | None) -> Iterator[Kept]:
    """All entries of a place or of all places, oldest first."""
    where, values = ("", ()) if key is None else (" WHERE p.key = ?", (key,))
    for row in connection.execute(f"SELECT {COLUMNS} FROM {SOURCE}{where} ORDER BY e.position", values):
        yield kept(row)


def verify(connection: sqlite3.Connection) -> Iterator[str]:
    """Each problem found: in the file itself, in what belongs together, in the index of words."""
    connection.execute("BEGIN")  # all that follows is about one moment
    for (said,) in connection.execute("PRAGMA integrity_check"):
        if said != "ok":
            yield f"the file: {said}"
    for kind, table in (("place", "places"), ("line", "lines")):
        (lost,) = connection.execute(
            f"SELECT count(*) FROM entries e LEFT JOIN {table} x ON x.id = e.{kind} WHERE x.id IS NULL"
        ).fetchone()
        if lost:
            yield f"{lost} entries whose {kind} is unknown"
    yield from _verify_words(connection)


def _verify_words(connection: sqlite3.Connection) -> Iterator[str]:
    """Each message must be in the index, nothing else, and with as many words as it has."""
    connection.execute("CREATE VIRTUAL TABLE temp.found USING fts5vocab(main, words, instance)")
    connection.execute("CREATE VIRTUAL TABLE temp.counted USING fts5vocab(main, words, row)")
    said = "SELECT ? || place AS term, position AS doc FROM entries WHERE sort = ?"
    indexed = "SELECT term, doc FROM temp.found WHERE term >= ? AND term < ?"
    marks = (PLACE_WORD, chr(ord(PLACE_WORD) + 1))
    messages = (PLACE_WORD, Sort.MESSAGE)
    (missing,) = connection.execute(f"SELECT count(*) FROM ({said} EXCEPT {indexed})", messages + marks).fetchone()
    if missing:
        yield f"{missing} messages that no search finds"
    (excess,) = connection.execute(f"SELECT count(*) FROM ({indexed} EXCEPT {said})", marks + messages).fetchone()
    if excess:
        yield f"{excess} messages in the index that are not there"
    (known,) = connection.execute("SELECT coalesce(sum(doc), 0) FROM temp.counted").fetchone()
    rows = connection.execute("SELECT text FROM entries WHERE sort = ?", (Sort.MESSAGE,))
    actual = sum(len(set(words(text))) + 1 for (text,) in rows)
    if known != actual and not missing and not excess:
        yield f"the index has {known} words, the messages have {actual}"
