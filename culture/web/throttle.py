"""Wrong passwords, counted per address and per account: whoever guesses has to wait."""

import time
from collections import OrderedDict
from collections.abc import Callable

TRIES = 5
SHARED = 20
"""For an address: behind a proxy or a tunnel everybody has the same."""
PERIOD = 300.0
_REMEMBERED = 4096

ADDRESS = "address "
"""What the key of an address begins with."""


class LoginThrottle:
    """So many failures in a period, then none until the oldest of them is that old."""

    def __init__(self, tries: int = TRIES, period: float = PERIOD, clock: Callable[[], float] = time.monotonic) -> None:
        self._tries = tries
        self._period = period
        self._clock = clock
        self._failures: OrderedDict[str, list[float]] = OrderedDict()

    def _most(self, key: str) -> int:
        return SHARED if key.startswith(ADDRESS) else self._tries

    def wait(self, *keys: str) -> float:
        """For how many seconds these may not try."""
        return max((self._wait(key) for key in keys), default=0.0)

    def _wait(self, key: str) -> float:
        since = self._clock() - self._period
        recent = [each for each in self._failures.get(key, ()) if each > since]
        most = self._most(key)
        return recent[-most] - since if len(recent) >= most else 0.0

    def failed(self, *keys: str) -> None:
        """Note a failure; the keys not seen for longest are forgotten first."""
        now = self._clock()
        for key in keys:
            recent = [each for each in self._failures.pop(key, ()) if each > now - self._period]
            self._failures[key] = [*recent[-self._most(key) :], now]
            while len(self._failures) > _REMEMBERED:
                self._failures.popitem(last=False)

    def forgive(self, *keys: str) -> None:
        """The latest failure was none."""
        for key in keys:
            if self._failures.get(key):
                self._failures[key].pop()

    def succeeded(self, *keys: str) -> None:
        """What was wrong before is forgotten."""
        for key in keys:
            self._failures.pop(key, None)
