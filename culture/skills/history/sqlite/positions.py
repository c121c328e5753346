"""A position for each entry: the first that is free of its server's in its microsecond, or behind them."""

import json
import sqlite3
from collections.abc import Iterable

from culture.skills.history.entry import Entry
from culture.skills.history.store import OWN_TIES, position_of, time_of

_SPAN = 1 << OWN_TIES
_HIGHEST = "SELECT max(coalesce((SELECT max(position) FROM entries), -1), coalesce((SELECT max(behind) FROM late), -1))"


class Positions:
    """Gives them out inside a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.highest = -1
        """The highest that was given out, is in the file, or something that came late is behind of."""
        self._stored = -1  # the highest of them when the transaction began
        self._next: dict[int, int] = {}  # by the first position of a server's in a microsecond

    def forget(self) -> None:
        """What is known of the file may never have been committed, or is not all."""
        (self.highest,) = self._connection.execute(_HIGHEST).fetchone()

    def begin(self) -> None:
        """All that was given out is in the file."""
        self._stored = self.highest
        self._next.clear()

    def prepare(self, batch: Iterable[Entry]) -> None:
        """Find out what is taken at the times that others have gone by, with one question for all."""
        latest = time_of(self._stored)
        late = {position_of(entry.at, entry.origin) for entry in batch if entry.at <= latest} - self._next.keys()
        if late:
            self._look(late)

    def _look(self, bases: Iterable[int]) -> None:
        (found,) = self._connection.execute(
            "SELECT json_group_array(json_array(value, (SELECT max(position) FROM entries"
            " WHERE position >= value AND position < value + ?))) FROM json_each(?)",
            (_SPAN, json.dumps(list(bases))),
        ).fetchone()
        for base, taken in json.loads(found):
            self._next[base] = base if taken is None else taken + 1

    def take(self, at: int, origin: str) -> int:
        """One for an entry of this time and server."""
        free = base = position_of(at, origin)
        if base <= self._stored or base in self._next:
            while (free := self._free(base)) >= base + _SPAN:
                base += _SPAN
        self._next[base] = free + 1
        if free > self.highest:
            self.highest = free
        return free

    def _free(self, base: int) -> int:
        if base not in self._next:
            if base > self._stored:
                return base
            self._look([base])
        return self._next[base]
