"""Who calls a tool, whom they may speak for, and how often."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from culture.lib.ratelimit import FixedRate, KeyedTokenBuckets
from culture.transport import NotSent

BURST = 40
PER_SECOND = 10.0
_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class Caller:
    """The identity of a token; without names, a program of this machine where there are no tokens."""

    key: str = ""
    """By which its calls are counted."""
    names: tuple[str, ...] = ()
    """Its own nick, then those that it may speak for."""
    channels: tuple[str, ...] = ()
    """Where it is from the beginning."""

    @property
    def is_known(self) -> bool:
        """Whether it has shown a token."""
        return bool(self.names)


NOBODY = Caller()


class CallRate:
    """So many calls at once, then so many a second, for each caller by itself."""

    def __init__(
        self, burst: int = BURST, per_second: float = PER_SECOND, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = per_second
        self._clock = clock
        self._buckets = KeyedTokenBuckets(FixedRate(burst, per_second), _REMEMBERED)

    def take(self, key: str) -> None:
        """Count a call; ``NotSent`` when it is one too many."""
        if not self._buckets.take(key, self._clock()):
            raise NotSent(f"too many calls: wait a second, then at most {self._rate:g} a second")
