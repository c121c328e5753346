"""Clocks for tests: a time that stands still, and sleeping."""

import asyncio
from collections.abc import Callable

from culture.runtime import Runtime


class Clock:
    """A clock whose time changes only when a test sets ``now``."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class ClockedRuntime(Runtime):
    """The real runtime, but its wall clock is the one of a test; with ``steady`` also the one that never goes back."""

    def __init__(self, clock: Callable[[], float], *, steady: bool = False) -> None:
        self.now = clock
        if steady:
            self.monotonic = clock


async def sleep(seconds: float) -> None:
    """Sleep in real time: only where time itself is tested, or a foreign program gives no event to wait for.

    tests/test_architecture.py lists the files that may; everywhere else a test waits for what it expects.
    """
    await asyncio.sleep(seconds)
