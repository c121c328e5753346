"""Exponential backoff: how long to wait before the next try.

After each failure the pause doubles, from ``first`` up to ``longest`` seconds: a short outage costs little, and a long
one does not load the other side. A part of each pause is random (``jitter``): after a restart of a server all its
clients have failed at the same moment, and without jitter they would come back at the same moment, too. Jitter only
shortens a pause, so ``longest`` holds; with a jitter of at most one half the next pause is never shorter than the
present one.

A success resets the pause. A connection that falls as soon as it stands is no success: ``lasted`` resets only after
half of the longest pause.
"""

import random as _random
from collections.abc import Callable


def delay(attempt: int, first: float, longest: float, jitter: float = 0.0, chance: float = 0.0) -> float:
    """Return the seconds to wait after failure number ``attempt`` (from 0), doubled each time.

    ``first`` and ``longest``: the first and the longest wait in seconds. ``jitter``: the share of a wait, from 0 to
    1, by which it is shortened at most; ``chance``: a random number from 0 to 1, how much of that share is left out.
    """
    # From 2**60 on it is the longest pause in any case, and a float would overflow.
    return min(longest, first * 2.0 ** min(attempt, 60)) * (1.0 - jitter * chance)


class Backoff:
    """The pauses between repeated attempts, such as to connect; each is twice the last."""

    def __init__(
        self, first: float, longest: float, *, jitter: float = 0.25, random: Callable[[], float] = _random.random
    ) -> None:
        self._first = min(first, longest)
        self._longest = longest
        self._jitter = jitter
        self._random = random
        self.pause = self._first
        """The next pause in seconds, before jitter."""

    def next(self) -> float:
        """Return the seconds to wait before the next attempt, and double the pause after that."""
        seconds = self.pause * (1.0 - self._jitter * self._random())
        self.pause = max(self.pause, min(self.pause * 2, self._longest))
        return seconds

    def at_least(self, seconds: float) -> None:
        """Make all pauses until the next ``reset`` at least this many seconds long.

        They may then exceed ``longest``.
        """
        self.pause = max(self.pause, seconds)

    def reset(self) -> None:
        """Go back to the first, shortest pause, after an attempt has succeeded."""
        self.pause = self._first

    def lasted(self, seconds: float) -> None:
        """Go back to the shortest pause if a connection lasted at least half of the longest pause.

        ``seconds``: how long the connection lasted.
        """
        if seconds >= self._longest / 2:
            self.reset()
