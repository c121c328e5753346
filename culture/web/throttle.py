"""Rate limit for password attempts: failures per IP address and per account."""

import time
from collections.abc import Callable

from culture.lib.ratelimit import SlidingWindow

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
    """Rate limit for logins: after too many failures, an IP address or account has to wait."""

    def __init__(self, tries: int = TRIES, period: float = PERIOD, clock: Callable[[], float] = time.monotonic) -> None:
        self._tries = tries
        self._period = period
        self._clock = clock
        self._failures = SlidingWindow(_MAX_KEYS)

    def _most(self, key: str) -> int:
        return SHARED if key.startswith(ADDRESS) else self._tries

    def wait(self, *keys: str) -> float:
        """Return the seconds until all of ``keys`` may try to log in again; 0 if they may now.

        A key is an IP address or an account.
        """
        now = self._clock()
        waits = (self._failures.wait(key, self._most(key), self._period, now) for key in keys)
        return max(waits, default=0.0)

    def failed(self, *keys: str) -> None:
        """Record a failed login for each of ``keys``, IP addresses and accounts.

        Above 4,096 keys the oldest are dropped.
        """
        for key in keys:
            self._failures.add(key, self._clock(), self._most(key))

    def forgive(self, *keys: str) -> None:
        """Undo the last failed login of each of ``keys``, IP addresses and accounts."""
        for key in keys:
            self._failures.undo(key)

    def succeeded(self, *keys: str) -> None:
        """Forget all failed logins of ``keys``, IP addresses and accounts, after a successful one."""
        for key in keys:
            self._failures.clear(key)
