"""Rate limit for password attempts: failures per IP address and per account."""

import time
from collections import OrderedDict
from collections.abc import Callable

TRIES = 5
"""Failures per account in a period."""
SHARED = 20
"""Failures per address in a period; more, as people behind a proxy or tunnel share one."""
PERIOD = 300.0
"""Seconds."""
_MAX_KEYS = 4096

ADDRESS = "address "
"""Prefix of the keys of addresses."""


class LoginThrottle:
    """Makes a key wait after ``tries`` failures in ``period`` seconds."""

    def __init__(self, tries: int = TRIES, period: float = PERIOD, clock: Callable[[], float] = time.monotonic) -> None:
        self._tries = tries
        self._period = period
        self._clock = clock
        self._failures: OrderedDict[str, list[float]] = OrderedDict()

    def _most(self, key: str) -> int:
        return SHARED if key.startswith(ADDRESS) else self._tries

    def wait(self, *keys: str) -> float:
        """Seconds until a new attempt is allowed for all of these keys; 0 if it is allowed now."""
        return max((self._wait(key) for key in keys), default=0.0)

    def _wait(self, key: str) -> float:
        since = self._clock() - self._period
        recent = [each for each in self._failures.get(key, ()) if each > since]
        most = self._most(key)
        return recent[-most] - since if len(recent) >= most else 0.0

    def failed(self, *keys: str) -> None:
        """Record a failure for each key; above 4,096 keys the oldest are dropped."""
        now = self._clock()
        for key in keys:
            recent = [each for each in self._failures.pop(key, ()) if each > now - self._period]
            self._failures[key] = [*recent[-self._most(key) :], now]
            while len(self._failures) > _MAX_KEYS:
                self._failures.popitem(last=False)

    def forgive(self, *keys: str) -> None:
        """Remove the last failure of each key."""
        for key in keys:
            if self._failures.get(key):
                self._failures[key].pop()

    def succeeded(self, *keys: str) -> None:
        """Remove all failures of each key."""
        for key in keys:
            self._failures.pop(key, None)
