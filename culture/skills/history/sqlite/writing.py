"""Writing the history's file: entries in bulk, redactions, moves, the removal of what is old."""

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain, groupby

from culture.skills.history.entry import Entry, Sort, conversation, party, split_msgid
from culture.skills.history.sqlite.schema import COLUMNS, PLACE_WORD, WIDTH
from culture.skills.history.store import TIES, position_at, time_of
from culture.skills.history.words import indexed

# Rows of one statement: while it runs, the other threads do, which a statement per row would keep asking for turns.
_AT_ONCE = 500
_VALUES = f"({','.join('?' * WIDTH)})"

Row = tuple[int, int, int, int, int, str, str, str | None, str, str, str, str, int, str]


class Writing:
    """What is done inside a transaction; ``forget`` after one that failed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._places: dict[str, int] = {}
        self._lines: dict[tuple[str, str], int] = {}
        self._last = 0
        self.forget()

    def forget(self) -> None:
        """What is known of the tables may never have been committed."""
        self._places.clear()
        self._lines.clear()
        self._last = self._connection.execute("SELECT coalesce(max(position), 0) FROM entries").fetchone()[0]

    def add(self, batch: Sequence[Entry]) -> None:
        """Keep them, in order."""
        for is_redaction, entries in groupby(batch, lambda entry: entry.verb == "REDACT"):
            if is_redaction:
                for entry in entries:
                    self._redact(entry)
            else:
                self._insert(entries)

    def _insert(self, entries: Iterable[Entry]) -> None:
        rows: list[Row] = []
        for entry in entries:
            position = position_at(entry.at)
            if position > self._last:
                self._last = position
            elif entry.at == time_of(self._last):
                self._last += 1
            else:
                self._put(rows)
                rows = []
                self._insert_late(entry)
                continue
            rows.append(self._row(entry, self._last))
        self._put(rows)

    def _put(self, rows: Sequence[Row]) -> None:
        """Insert them at their positions, but for those that are there already."""
        connection = self._connection
        for start in range(0, len(rows), _AT_ONCE):
            some = rows[start : start + _AT_ONCE]
            values = ",".join([_VALUES] * len(some))
            before = connection.total_changes
            connection.execute(
                f"INSERT OR IGNORE INTO entries ({COLUMNS}) VALUES {values}", tuple(chain.from_iterable(some))
            )
            is_all = connection.total_changes - before == len(some)
            self._index(some if is_all else [row for row in some if self._is_at(row)])

    def _is_at(self, row: Row) -> bool:
        found = self._connection.execute("SELECT line, seq, place FROM entries WHERE position = ?", row[:1]).fetchone()
        return found is not None and tuple(found) == (row[3], row[4], row[1])

    def _insert_late(self, entry: Entry) -> None:
        """One that happened before others that are here: it goes to the first free position of its time."""
        position = position_at(entry.at)
        while (free := self._free(position)) is None:
            position += 1 << TIES
        self._last = max(self._last, free)
        self._put([self._row(entry, free)])

    def _free(self, position: int) -> int | None:
        """The position behind all those of the same microsecond."""
        end = position + (1 << TIES)
        taken = self._connection.execute(
            "SELECT max(position) FROM entries WHERE position >= ? AND position < ?", (position, end)
        ).fetchone()[0]
        free = position if taken is None else int(taken) + 1
        return free if free < end else None

    def _index(self, rows: Sequence[Row]) -> None:
        words = [(row[0], words_of(row[1], row[9])) for row in rows if row[2] == Sort.MESSAGE]
        if words:
            values = ",".join(["(?,?)"] * len(words))
            self._connection.execute(
                f"INSERT INTO words (rowid, text) VALUES {values}", tuple(chain.from_iterable(words))
            )

    def _redact(self, redaction: Entry) -> None:
        """Leave nothing of a message but its id, also where it comes later than this."""
        named = split_msgid(redaction.redacts)
        if named is not None:
            origin, epoch, seq = named
            place = self._place(redaction)
            row = self._connection.execute(
                "SELECT position, sort, text FROM entries WHERE line = ? AND seq = ? AND place = ?",
                (self._line(origin, epoch), seq, place),
            ).fetchone()
            if row is not None:
                self._erase(place, *row)
            else:
                self._insert([redaction.blank()._replace(origin=origin, epoch=epoch, seq=seq)])
        self._insert([redaction])

    def _erase(self, place: int, position: int, sort: int, text: str) -> None:
        if sort == Sort.MESSAGE:
            self._unindex(position, place, text)
        self._connection.execute(
            "UPDATE entries SET sort = ?, verb = '', source = '', account = NULL, kind = '', text = '', data = ''"
            " WHERE position = ?",
            (Sort.REDACTED, position),
        )

    def _unindex(self, position: int, place: int, text: str) -> None:
        """Take a message out of the index, which has to be told again what it knew of it."""
        self._connection.execute(
            "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (position, words_of(place, text))
        )

    def _row(self, entry: Entry, position: int) -> Row:
        """The columns: an entry's own from its verb on are the table's."""
        place, origin, epoch, seq, _, *rest = entry
        line = self._lines.get((origin, epoch)) or self._line(origin, epoch)
        known = self._places.get(place) or self._place(entry)
        return (position, known, entry.sort, line, seq, *rest)  # type: ignore[return-value]

    def _line(self, origin: str, epoch: str) -> int:
        """The number of a line of ids."""
        known = self._lines.get((origin, epoch))
        if known is None:
            self._connection.execute("INSERT OR IGNORE INTO lines (origin, epoch) VALUES (?, ?)", (origin, epoch))
            known = self._lines[origin, epoch] = self._connection.execute(
                "SELECT id FROM lines WHERE origin = ? AND epoch = ?", (origin, epoch)
            ).fetchone()[0]
        return known

    def _place(self, entry: Entry) -> int:
        """The number of a place; for a conversation, with the nicks that the two have now."""
        one, _, other = entry.place.partition(" ")
        if not other:
            return self._make_place(entry.place, (entry.place, entry.target, "", "", "", ""))
        sender = party(entry.account, entry.nick)
        nicks = (entry.nick, entry.target) if sender == one else (entry.target, entry.nick)
        known = self._make_place(entry.place, (conversation(one, other), "", one, other, *nicks))
        if entry.nick:
            self._connection.execute("UPDATE places SET one_nick = ?, other_nick = ? WHERE id = ?", (*nicks, known))
        return known

    def _make_place(self, key: str, row: tuple[str, ...]) -> int:
        self._connection.execute(
            "INSERT OR IGNORE INTO places (key, name, one, other, one_nick, other_nick) VALUES (?, ?, ?, ?, ?, ?)", row
        )
        known: int = self._connection.execute("SELECT id FROM places WHERE key = ?", (key,)).fetchone()[0]
        if not row[2]:
            self._places[key] = known
        return known

    def move(self, old: str, new: str, name: str) -> None:
        """A channel has another name; what was said under that name before stays there too."""
        self._places.clear()
        connection = self._connection
        found = connection.execute("SELECT id FROM places WHERE key = ?", (old,)).fetchone()
        if found is None:
            return
        taken = connection.execute("SELECT id FROM places WHERE key = ?", (new,)).fetchone()
        if taken is None or taken == found:
            connection.execute("UPDATE places SET key = ?, name = ? WHERE id = ?", (new, name, found[0]))
            return
        for position, text in connection.execute(
            "SELECT position, text FROM entries WHERE place = ? AND sort = ?", (found[0], Sort.MESSAGE)
        ).fetchall():
            self._unindex(position, found[0], text)
            connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (position, words_of(taken[0], text)))
        connection.execute("UPDATE OR IGNORE entries SET place = ? WHERE place = ?", (taken[0], found[0]))

    def remove(self, places: Sequence[int], before: int, most: int) -> int:
        """Remove up to so many entries of these places from before a position."""
        marks = ",".join("?" * len(places))
        rows = self._connection.execute(
            f"SELECT position, place, sort, text FROM entries WHERE place IN ({marks}) AND position < ?"
            " ORDER BY position LIMIT ?",
            (*places, before, most),
        ).fetchall()
        for position, place, sort, text in rows:
            if sort == Sort.MESSAGE:
                self._unindex(position, place, text)
        self._connection.executemany("DELETE FROM entries WHERE position = ?", [row[:1] for row in rows])
        return len(rows)


def words_of(place: int, text: str) -> str:
    """What the index knows of a message: where it was said, and its words."""
    return f"{PLACE_WORD}{place} {indexed(text)}"
