"""At most one notice of a kind to the same person within a while, and so many to all of them together."""

from culture.lib.ratelimit import SlidingWindow
from culture.protocol.names import fold
from culture.runtime import REAL, Runtime

MOST_REMEMBERED = 1000


class Throttle:
    """Remembers who was told what within the last ``period`` seconds; ``most`` is how many that may be."""

    def __init__(self, period: float, most: int = MOST_REMEMBERED, *, runtime: Runtime = REAL) -> None:
        self._period = period
        self._most = most
        self._clock = runtime.monotonic
        self._sent = SlidingWindow(most)

    def allows(self, nick: str, text: str) -> bool:
        """Whether somebody may be told this now; they count as told then."""
        now, key = self._clock(), (fold(nick), text)
        self._sent.prune(self._period, now)
        if self._sent.count(key, self._period, now) or len(self._sent) >= self._most:
            return False
        self._sent.add(key, now)
        return True
