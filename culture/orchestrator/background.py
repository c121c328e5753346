"""Work that goes on beside each other, with an owner that awaits it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger(__name__)


class Jobs:
    """Whatever the team does at once. What fails is told, and ends nothing else."""

    def __init__(self, on_failure: Callable[[str, Exception], None]) -> None:
        self._on_failure = on_failure
        self._running: dict[str, asyncio.Task[None]] = {}

    def start(self, name: str, work: Coroutine[Any, Any, object]) -> None:
        """Begin it, unless the same is under way."""
        if name in self._running:
            work.close()
            return
        self._running[name] = asyncio.create_task(self._run(name, work), name=name)

    def is_running(self, name: str) -> bool:
        """Whether it is under way."""
        return name in self._running

    async def settle(self) -> None:
        """Wait until nothing is under way."""
        while self._running:
            await asyncio.wait(list(self._running.values()))

    async def stop(self) -> None:
        """Break off what is under way."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, name: str, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except Exception as error:
            log.exception("%s failed", name)
            self._on_failure(name, error)
        finally:
            del self._running[name]
