"""Clocks for tests: a time that stands still, and moments that pass."""

import asyncio


class Clock:
    """A time that passes only when told."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


async def after(seconds: float) -> None:
    """A moment of that length."""
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, over.set)
    await over.wait()
