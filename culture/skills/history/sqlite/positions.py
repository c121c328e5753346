"""A position for each entry: the first that is free in its microsecond, or in the next that has one."""

import json
import sqlite3
from collections.abc import Iterable

from culture.skills.history.store import TIES, position_at

_SPAN = 1 << TIES


class Positions:
    """Gives them out inside a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._highest = -1  # that was given out or is in the file
        self._stored = -1  # the highest of them when the transaction began
        self._next: dict[int, int] = {}  # by microsecond

    def forget(self) -> None:
        """What is known of the file may never have been committed, or is not all."""
        (highest,) = self._connection.execute("SELECT max(position) FROM entries").fetchone()
        self._highest = -1 if highest is None else highest

    def begin(self) -> None:
        """All that was given out is in the file."""
        self._stored = self._highest
        self._next.clear()

    def prepare(self, times: Iterable[int]) -> None:
        """Find out what is taken at the times that others have gone by, with one question for all."""
        late = {base for at in times if (base := position_at(at)) <= self._stored} - self._next.keys()
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

    def take(self, at: int) -> int:
        """One for an entry of this time."""
        base = position_at(at)
        while (free := self._free(base)) >= base + _SPAN:
            base += _SPAN
        self._next[base] = free + 1
        if free > self._highest:
            self._highest = free
        return free

    def _free(self, base: int) -> int:
        if base not in self._next:
            if base > self._stored:
                return base
            self._look([base])
        return self._next[base]
