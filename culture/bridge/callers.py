"""Callers of tools: the nicks they may act as, and their rate limit."""

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
    """Caller of a tool, with the nicks of its token.

    Without names it is a local program, at a bridge that has no tokens.
    """

    key: str = ""
    """Key of its rate limit."""
    names: tuple[str, ...] = ()
    """Its own nick, then others that it may act as."""
    channels: tuple[str, ...] = ()
    """Channels to join at the start."""

    @property
    def is_known(self) -> bool:
        """Whether the caller has shown a token, and so has nicks of its own."""
        return bool(self.names)


NOBODY = Caller()


class CallRate:
    """The rate limit of callers: a burst of calls, then a number of calls per second, for each."""

    def __init__(
        self, burst: int = BURST, per_second: float = PER_SECOND, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = per_second
        self._clock = clock
        self._buckets = KeyedTokenBuckets(FixedRate(burst, per_second), _REMEMBERED)

    def take(self, key: str) -> None:
        """Count a call of the caller ``key``; raise ``NotSent`` if it is above the rate limit."""
        if not self._buckets.take(key, self._clock()):
            raise NotSent(f"too many calls: wait a second, then at most {self._rate:g} a second")
