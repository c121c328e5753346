"""Bursts become one message: how often something may be sent, and what waits until then."""

from culture.clients.shared.webhook.alerts import Alert, gravest_first
from culture.lib.ratelimit import FixedRate, TokenBucket
from culture.runtime import REAL, Runtime

SHOWN = 5
"""So many alerts of a burst are told in full; the others are counted."""


class Bucket:
    """Lets ``burst`` things through at once, and after that one every ``every`` seconds."""

    def __init__(self, burst: int, every: float, *, runtime: Runtime = REAL) -> None:
        self._limit = FixedRate(burst, 1 / every)
        self._clock = runtime.monotonic
        self._bucket = TokenBucket(self._clock())
        self._not_before = self._clock()

    def wait(self) -> float:
        """How many seconds until the next may go; 0 when it may now."""
        now = self._clock()
        return max(self._bucket.wait(self._limit, now), self._not_before - now, 0.0)

    def take(self) -> bool:
        """Let one through, if it may."""
        return self.wait() == 0 and self._bucket.take(1, self._limit, self._clock()) == 1

    def rest(self, seconds: float) -> None:
        """Nothing goes for so long: the other side asked for it."""
        self._not_before = max(self._not_before, self._clock() + seconds)


class Pending:
    """The alerts that wait to be told: a few in full, the gravest first, and the number of all."""

    def __init__(self) -> None:
        self._shown: list[Alert] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, alert: Alert) -> None:
        """One more."""
        self._shown = gravest_first([*self._shown, alert])[:SHOWN]
        self._count += 1

    def take(self) -> tuple[tuple[Alert, ...], int]:
        """Those to tell in full, and how many more there were; nothing waits afterwards."""
        shown, more = tuple(self._shown), self._count - len(self._shown)
        self._shown, self._count = [], 0
        return shown, more
