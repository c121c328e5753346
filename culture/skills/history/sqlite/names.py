"""The numbers that stand for places and for lines of ids in the rows."""

import sqlite3

from culture.skills.history.entry import Entry, party

Nicks = tuple[str, str]


class Names:
    """Looks them up, and makes those that are new."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._places: dict[str, int] = {}
        self._lines: dict[tuple[str, str], int] = {}
        self._nicks: dict[int, Nicks] = {}

    def forget(self) -> None:
        """What is known of the file may never have been committed, or has changed."""
        self._places.clear()
        self._lines.clear()
        self._nicks.clear()

    def line(self, origin: str, epoch: str) -> int:
        """The number of a line of ids."""
        known = self._lines.get((origin, epoch))
        if known is None:
            self._connection.execute(
                "INSERT INTO lines (origin, epoch) VALUES (?, ?) ON CONFLICT DO NOTHING", (origin, epoch)
            )
            known = self._lines[origin, epoch] = self._connection.execute(
                "SELECT id FROM lines WHERE origin = ? AND epoch = ?", (origin, epoch)
            ).fetchone()[0]
        return known

    def place(self, entry: Entry) -> int:
        """The number of a place; a conversation gets the nicks that the two have in this entry."""
        known = self._places.get(entry.place)
        if known is None:
            known = self._places[entry.place] = self._make(entry)
        if entry.is_private and entry.source:
            self._call(known, entry)
        return known

    def _make(self, entry: Entry) -> int:
        one, _, other = entry.place.partition(" ")
        row = (entry.place, "", one, other) if other else (entry.place, entry.target, "", "")
        self._connection.execute(
            "INSERT INTO places (key, name, one, other) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", row
        )
        number: int = self._connection.execute("SELECT id FROM places WHERE key = ?", (entry.place,)).fetchone()[0]
        return number

    def _call(self, place: int, entry: Entry) -> None:
        is_one = entry.place.startswith(f"{party(entry.account, entry.nick)} ")
        nicks = (entry.nick, entry.target) if is_one else (entry.target, entry.nick)
        if self._nicks.get(place) != nicks:
            self._connection.execute("UPDATE places SET one_nick = ?, other_nick = ? WHERE id = ?", (*nicks, place))
            self._nicks[place] = nicks
