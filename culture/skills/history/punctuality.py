"""What came late: everything else came in the order of its time, and needs no note of when it came."""

from collections.abc import Callable

from culture.server.core.ids import MICROSECONDS

LAG = 10 * MICROSECONDS
"""So long after its time an entry may be written and is on time all the same."""


class Punctuality:
    """Judges the entries of one transaction after the other."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._opened = 0
        self.arrived = 0
        """When the entries of this transaction came (microseconds): never earlier than those before them."""
        self.oldest = 0
        """What is from before this time is late, whatever else there is: it is told again, or was long under way."""

    def open(self, arrived: int) -> None:
        """From now on; what was noted last came at this time."""
        self._opened = round(self._now() * MICROSECONDS)
        self.arrived = arrived

    def begin(self) -> None:
        """A new transaction."""
        now = round(self._now() * MICROSECONDS)
        self.arrived = max(self.arrived, now)
        self.oldest = max(self._opened, now - LAG)

    def is_late(self, at: int, position: int, highest: int) -> bool:
        """Is an entry of this time, at this position, when that was the highest that was given out?"""
        return position <= highest or at < self.oldest
