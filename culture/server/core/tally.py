"""Counting what happened within a period, by whoever did it."""

from collections import deque
from collections.abc import Hashable


class Tally:
    """How often each of them did something lately."""

    def __init__(self) -> None:
        self._times: dict[Hashable, deque[float]] = {}

    def note(self, who: Hashable, now: float) -> None:
        """It happened again."""
        self._times.setdefault(who, deque()).append(now)

    def count(self, who: Hashable, period: float, now: float) -> int:
        """How often within the period."""
        times = self._times.get(who)
        if times is None:
            return 0
        while times and times[0] <= now - period:
            times.popleft()
        if not times:
            del self._times[who]
        return len(times)

    def forget(self, period: float, now: float) -> None:
        """Let go of what no longer counts."""
        for who in list(self._times):
            self.count(who, period, now)
