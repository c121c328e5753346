"""Hours that pass in seconds: every timer of this process fires in its order, and nobody waits for it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from culture.runtime import REAL
from tests.support.clock import sleep

QUIET = 0.001
"""Nothing happens any more when no socket has had anything to say for so long."""
TOGETHER = 1.0
"""Timers of the same second fire together, as in a process that is late."""


class Hours:
    """Moves the clocks of this process to the next timer of its loop, whenever nothing else happens.

    What is under way over sockets goes on in real time, so that no answer is late. The clock of ``datetime`` stays.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
        self._skipped = 0.0
        self._is_passing = False
        for name in ("monotonic", "time"):
            monkeypatch.setattr(time, name, self._moved(getattr(time, name)))
        # The wall clock stays: to a daemon whose clock is ahead of its server's all messages are stale.
        monkeypatch.setattr(REAL, "monotonic", self._moved(REAL.monotonic))
        selector: Any = loop._selector  # type: ignore[attr-defined]
        self._select = selector.select
        monkeypatch.setattr(selector, "select", self._selected)

    async def passes(self, seconds: float) -> None:
        """So much time passes."""
        self._is_passing = True
        try:
            await sleep(seconds)
        finally:
            self._is_passing = False

    def _moved(self, clock: Callable[[], float]) -> Callable[[], float]:
        return lambda: clock() + self._skipped

    def _selected(self, timeout: float | None = None) -> Any:
        if not self._is_passing or timeout is None or timeout <= QUIET:
            return self._select(timeout)
        found = self._select(QUIET)
        if not found:
            self._skipped += timeout - QUIET + TOGETHER
        return found


@asynccontextmanager
async def hours() -> AsyncIterator[Hours]:
    """A clock for the time of a test."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield Hours(asyncio.get_running_loop(), monkeypatch)
