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
    """A program that calls a tool of the bridge, with the nicks and channels of its token.

    Without nicks it is a local program, at a bridge that has no tokens.
    """

    key: str = ""
    """Key of its rate limit."""
    names: tuple[str, ...] = ()
    """Its own nick, then others that it may act as."""
    channels: tuple[str, ...] = ()
    """Channels to join at the start."""

    @property
    def is_known(self) -> bool:
        """Whether the program has sent a valid token, so that it has nicks of its own."""
        return bool(self.names)


NOBODY = Caller()


class CallRate:
    """Rate limit for tool calls: a token bucket for each program that calls tools of the bridge."""

    def __init__(
        self, burst: int = BURST, per_second: float = PER_SECOND, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = per_second
        self._clock = clock
        self._buckets = KeyedTokenBuckets(FixedRate(burst, per_second), _REMEMBERED)

    def take(self, key: str) -> None:
        """Take one call from the token bucket of ``key``; raise ``NotSent`` if the bucket is empty."""
        if not self._buckets.take(key, self._clock()):
            raise NotSent(f"too many calls: wait a second, then at most {self._rate:g} a second")
