"""Writing the history's file: entries in bulk, and what takes messages back."""

import sqlite3
from collections.abc import Sequence

from culture.skills.history.entry import Entry, Sort, split_msgid
from culture.skills.history.punctuality import Punctuality
from culture.skills.history.sqlite import rows
from culture.skills.history.sqlite.names import Names
from culture.skills.history.sqlite.positions import Positions


class Writing:
    """What one connection writes, inside transactions; ``forget`` after one that failed."""

    def __init__(self, connection: sqlite3.Connection, punctuality: Punctuality) -> None:
        self._connection = connection
        self._punctuality = punctuality
        self._names = Names(connection)
        self._positions = Positions(connection)
        self._version: int | None = None
        self._late: dict[int, int] = {}  # by position, what these came behind
        self._taken: set[str] = set()  # ids that other messages have

    def begin(self) -> None:
        """In a new transaction: learn again what another connection may have changed."""
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._names.forget()
            self._positions.forget()
            self._version = version
        self._positions.begin()
        self._punctuality.begin()
        self._late.clear()

    def forget(self) -> None:
        """What is known of the file may never have been committed, or has changed."""
        self._version = None

    def add(self, batch: Sequence[Entry]) -> set[str]:
        """Keep them, in order; the ids of those that are not kept since another message has their id."""
        self._positions.prepare(batch)
        self._taken = set()
        pending: list[rows.Row] = []
        for entry in batch:
            if entry.verb == "REDACT":
                self._put(pending)
                pending = []
                self._redact(entry)
            else:
                pending.append(self._row(entry))
        self._put(pending)
        return self._taken

    def _put(self, pending: Sequence[rows.Row]) -> None:
        inserted = rows.insert(self._connection, pending)
        message = int(Sort.MESSAGE)
        if len(inserted) < len(pending):
            there = {row[0] for row in inserted}
            others = [row for row in pending if row[2] == message and row[0] not in there]
            self._taken.update(rows.taken(self._connection, others))
        rows.index(self._connection, [(row[0], row[1], row[9]) for row in inserted if row[2] == message])
        if self._late:
            late = [(row[0], self._late[row[0]]) for row in inserted if row[0] in self._late and row[2] == message]
            rows.note(self._connection, late, self._punctuality.arrived)
            self._late.clear()

    def _row(self, entry: Entry) -> rows.Row:
        """The columns; called for every entry, so it does no more than it must."""
        _, origin, epoch, seq, at, verb, source, account, kind, text, target, status, closed, data = entry
        names, highest = self._names, self._positions.highest
        position = self._positions.take(at, origin)
        if self._punctuality.is_late(at, position, highest):
            self._late[position] = highest
        numbers = (position, names.place(entry), int(entry.sort), names.line(origin, epoch), seq)
        return (*numbers, verb, source, account or "", kind, text, target, status, int(closed), data)

    def _redact(self, redaction: Entry) -> None:
        """Leave nothing of a message but its id, also where it comes later than this."""
        new = [self._row(redaction)]
        named = split_msgid(redaction.redacts)
        if named is not None and not self._erase(redaction, *named):
            origin, epoch, seq = named
            new.insert(0, self._row(redaction.blank()._replace(origin=origin, epoch=epoch, seq=seq)))
        self._put(new)

    def _erase(self, redaction: Entry, origin: str, epoch: str, seq: int) -> bool:
        """Is there such a message? Then there was."""
        found = self._connection.execute(
            "SELECT e.position, e.sort, e.place, e.text FROM entries e JOIN places p ON p.id = e.place"
            " WHERE e.line = ? AND e.seq = ? AND (p.id = ? OR ? AND p.one <> '')",
            (self._names.line(origin, epoch), seq, self._names.place(redaction), redaction.is_private),
        ).fetchall()
        for position, sort, place, text in found:
            if sort == Sort.MESSAGE:
                rows.unindex(self._connection, [(position, place, text)])
            self._connection.execute(
                "UPDATE entries SET sort = ?, verb = '', source = '', account = NULL, kind = '', text = '', data = ''"
                " WHERE position = ?",
                (Sort.REDACTED, position),
            )
        return bool(found)
