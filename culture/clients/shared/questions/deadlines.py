"""When the time of each question is over."""

import asyncio
from collections.abc import Callable

_LONGEST = 86400.0
"""A clock that is set is noticed after a day."""


class Deadlines:
    """One timer for each question that waits; ``over`` is called with its number."""

    def __init__(self, clock: Callable[[], float], over: Callable[[int], None]) -> None:
        self._clock = clock
        self._over = over
        self._timers: dict[int, asyncio.TimerHandle] = {}

    def arm(self, number: int, deadline: float) -> None:
        """Wait until then, and no longer until another time."""
        self.after(number, min(max(deadline - self._clock(), 0), _LONGEST))

    def after(self, number: int, seconds: float) -> None:
        """Look at it again after so long."""
        self.disarm(number)
        self._timers[number] = asyncio.get_running_loop().call_later(seconds, self._over, number)

    def disarm(self, number: int) -> None:
        """It has an end."""
        if (timer := self._timers.pop(number, None)) is not None:
            timer.cancel()

    def stop(self) -> None:
        """Wait for nothing more."""
        for number in list(self._timers):
            self.disarm(number)
