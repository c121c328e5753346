"""Bursts become one message: how often something may be sent, and what waits until then."""

import time
from collections.abc import Callable

from culture.clients.shared.webhook.alerts import Alert, gravest_first

SHOWN = 5
"""So many alerts of a burst are told in full; the others are counted."""

Clock = Callable[[], float]


class Bucket:
    """Lets ``burst`` things through at once, and after that one every ``every`` seconds."""

    def __init__(self, burst: int, every: float, clock: Clock = time.monotonic) -> None:
        self._burst = burst
        self._every = every
        self._clock = clock
        self._tokens = float(burst)
        self._at = clock()
        self._not_before = self._at

    def wait(self) -> float:
        """How many seconds until the next may go; 0 when it may now."""
        now = self._fill()
        missing = 0.0 if self._tokens >= 1 else (1 - self._tokens) * self._every
        return max(missing, self._not_before - now, 0.0)

    def take(self) -> bool:
        """Let one through, if it may."""
        if self.wait() > 0:
            return False
        self._tokens -= 1
        return True

    def rest(self, seconds: float) -> None:
        """Nothing goes for so long: the other side asked for it."""
        self._not_before = max(self._not_before, self._clock() + seconds)

    def _fill(self) -> float:
        now = self._clock()
        # A hair more than exact, as a wait that was slept off must be over.
        self._tokens = min(float(self._burst), self._tokens + (now - self._at) / self._every + 1e-9)
        self._at = now
        return now


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
