"""Clocks for tests: a time that stands still, and sleeping."""

import asyncio


class Clock:
    """A clock whose time changes only when a test sets ``now``."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


async def sleep(seconds: float) -> None:
    """Sleep in real time: only where time itself is tested, or a foreign program gives no event to wait for.

    tests/test_architecture.py lists the files that may; everywhere else a test waits for what it expects.
    """
    await asyncio.sleep(seconds)
