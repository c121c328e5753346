"""Rate limits: token buckets, sliding windows and slots.

Who may do how much is decided by the users of this module.

**Token bucket** (``TokenBucket``): "a burst of 5, then 2 per second". A bucket holds at most ``burst`` tokens, gets
``rate`` new ones per second, and each action takes one. Over any time ``t`` at most ``burst + rate * t`` actions pass,
and a user who was quiet has the whole burst again. It needs two numbers, however many actions there are. Use it where
too much is delayed: commands of a client, lines to a server, calls of a tool.

**Sliding window** (``SlidingWindow``): "at most 5 failures in 10 minutes". It keeps the time of each counted action,
so the limit is exact at every moment, and the period may change between two calls. Use it where too much is refused:
failed logins, new connections, notices. Callers stop adding at their limit, which bounds the times of one key.

**Slots** (``Slots``): "at most 64 at once".

Nothing here reads a clock: callers pass ``now``, seconds that never go back (``time.monotonic``), so a test uses a
clock of its own. Nothing grows without a bound: of more than ``most_keys`` keys the least recently used are forgotten.
That favours the user of a forgotten key, and an attacker would need that many addresses or accounts to get there.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Hashable
from typing import NamedTuple, Protocol

# A wait that was slept through must be over, whatever the rounding of floats: so small a part of a token is lent, and
# no wait is shorter than this.
_NEARLY = 1e-6


class RateLimit(Protocol):
    """A limit: ``burst`` actions at once, then ``rate`` per second; a rate of 0 is no limit."""

    @property
    def burst(self) -> float:
        """Return the number of actions that may run at once."""

    @property
    def rate(self) -> float:
        """Return the number of actions per second that may run after the burst."""


class FixedRate(NamedTuple):
    """A rate limit with constant values."""

    burst: float
    rate: float


class TokenBucket:
    """The token bucket of one user: each action takes a token, and tokens come back with time.

    The limit is passed to each call, since it changes with a login or a reload.
    """

    __slots__ = ("_at", "_tokens")

    def __init__(self, now: float) -> None:
        self._tokens: float | None = None  # full, whatever the burst is
        self._at = now

    def take(self, count: int, limit: RateLimit, now: float) -> int:
        """Take up to ``count`` tokens, and return how many were there: so many actions may run now.

        ``limit``: size and refill rate of the bucket; ``now``: monotonic time in seconds.
        """
        if not limit.rate:
            return count
        tokens = self._fill(limit, now)
        granted = min(count, max(0, int(tokens + _NEARLY)))
        self._tokens = tokens - granted
        return granted

    def spend(self, count: float, limit: RateLimit, now: float) -> float:
        """Take all ``count`` tokens, on credit if they are missing.

        ``limit``: size and refill rate of the bucket; ``now``: monotonic time in seconds. Returns the seconds until
        the debt is paid; 0 without debt.
        """
        if not limit.rate:
            return 0.0
        self._tokens = self._fill(limit, now) - count
        return max(0.0, -self._tokens / limit.rate)

    def give_back(self, part: float) -> None:
        """Put back a part of a token, because an action cost less than it took."""
        if self._tokens is not None:
            self._tokens += part

    def wait(self, limit: RateLimit, now: float) -> float:
        """Return the seconds until the bucket has one token; 0 if it has one.

        ``limit``: size and refill rate of the bucket; ``now``: monotonic time in seconds.
        """
        if not limit.rate:
            return 0.0
        missing = 1 - self._fill(limit, now)
        return max(missing / limit.rate, _NEARLY) if missing > _NEARLY else 0.0

    def _fill(self, limit: RateLimit, now: float) -> float:
        tokens = limit.burst if self._tokens is None else self._tokens
        passed = now - self._at
        if passed > 0:
            tokens += passed * limit.rate
            self._at = now
        self._tokens = tokens = min(limit.burst, tokens)
        return tokens


class KeyedTokenBuckets:
    """One token bucket for each key, such as a user, all with the same limit."""

    def __init__(self, limit: RateLimit, most_keys: int = 1024) -> None:
        self._limit = limit
        self._most_keys = most_keys
        self._buckets: OrderedDict[Hashable, TokenBucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: Hashable, now: float) -> bool:
        """Take a token from the key's bucket; return False if it is empty: the limit is exceeded."""
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = TokenBucket(now)
            if len(self._buckets) > self._most_keys:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
        return bucket.take(1, self._limit, now) == 1


class SlidingWindow:
    """Counts the recent actions of each key, such as a user, by their times."""

    def __init__(self, most_keys: int = 65_536) -> None:
        self._most_keys = most_keys
        self._times: OrderedDict[Hashable, deque[float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._times)

    def add(self, key: Hashable, now: float, most: int | None = None) -> None:
        """Record an action of a key at the time ``now``.

        ``most``: how many of the key's latest actions are kept; None keeps all.
        """
        times = self._times.setdefault(key, deque())
        times.append(now)
        while most is not None and len(times) > most:
            times.popleft()
        self._times.move_to_end(key)
        if len(self._times) > self._most_keys:
            self._times.popitem(last=False)

    def count(self, key: Hashable, period: float, now: float) -> int:
        """Return the number of the key's actions within the last ``period`` seconds."""
        times = self._times.get(key)
        if times is None:
            return 0
        while times and times[0] <= now - period:
            times.popleft()
        if not times:
            del self._times[key]
        return len(times)

    def wait(self, key: Hashable, most: int, period: float, now: float) -> float:
        """Return the seconds until the key has fewer than ``most`` actions within ``period`` s."""
        count = self.count(key, period, now)
        return self._times[key][count - most] + period - now if count >= most else 0.0

    def undo(self, key: Hashable) -> None:
        """Remove the latest action of a key, as if it had not been recorded."""
        times = self._times.get(key)
        if times:
            times.pop()
            if not times:
                del self._times[key]

    def clear(self, key: Hashable) -> None:
        """Drop all recorded actions of a key."""
        self._times.pop(key, None)

    def prune(self, period: float, now: float) -> None:
        """Drop all keys that did nothing within the last ``period`` seconds."""
        for key in list(self._times):
            self.count(key, period, now)


class Slots:
    """Counts how many slots, such as connections, each key has in use."""

    def __init__(self) -> None:
        self._used: Counter[Hashable] = Counter()

    def __len__(self) -> int:
        return len(self._used)

    def take(self, key: Hashable, most: int) -> bool:
        """Take a slot for the key and return True; return False if the key already uses ``most``."""
        if self._used[key] >= most:
            return False
        self._used[key] += 1
        return True

    def release(self, key: Hashable) -> None:
        """Give back a slot of the key."""
        self._used[key] -= 1
        if self._used[key] <= 0:
            del self._used[key]
