"""What the thread that makes vectors is told by others."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from culture.runtime import REAL, Runtime
from culture.skills.history.store import position_at

if TYPE_CHECKING:
    from culture.skills.history.semantic.engine import Engine

Order = Callable[["Engine"], None]
_RECENT = position_at(300_000_000)  # before the last message known, where a new one may be
_MOST_ORDERS = 10_000


class News:
    """Where something new is, and what has changed otherwise; told from any thread, in no time."""

    def __init__(self, runtime: Runtime = REAL) -> None:
        self._turn = runtime.lock()
        self._orders: deque[Order] = deque()
        self._is_noted = False
        self._after: int | None = None
        self.wake = runtime.event()
        self.settled = runtime.event()
        """Nothing is left to do."""

    def note(self, at: int | None) -> None:
        """Something was written, from this time on."""
        with self._turn:
            self._is_noted = True
            if at is not None:
                after = position_at(at) - 1
                self._after = after if self._after is None else min(self._after, after)
            self._tell()

    def order(self, order: Order) -> None:
        """Something else has changed; what is too much is found by the next walk through everything."""
        with self._turn:
            if len(self._orders) < _MOST_ORDERS:
                self._orders.append(order)
            self._tell()

    def _tell(self) -> None:
        self.settled.clear()
        self.wake.set()

    def settle(self) -> None:
        """Everything is done, unless somebody said something since the last look."""
        with self._turn:
            if not self.wake.is_set():
                self.settled.set()

    def apply(self, engine: "Engine") -> None:
        """Take note of it all."""
        self.wake.clear()
        while self._orders:
            self._orders[0](engine)
            self._orders.popleft()  # after an error it comes again
        with self._turn:
            is_noted, after = self._is_noted, self._after
            self._is_noted, self._after = False, None
        if is_noted:
            engine.news.begin(max(engine.tip() - _RECENT, -1) if after is None else after)
