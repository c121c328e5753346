"""Background tasks of the server, ended together by ``stop``."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


class ServerTasks:
    """Runs coroutines as background tasks until ``stop`` is called."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[None], None] = {}  # in the order of their starts

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine in the background as a task; an error of it is logged."""
        task = asyncio.get_running_loop().create_task(work)
        self._running[task] = None
        task.add_done_callback(self._ended)
        return task

    async def stop(self) -> None:
        """Cancel all running background tasks and wait until they have ended."""
        # A task that was started in this very turn takes its first step here: cancelled before, it would leave the
        # coroutine that it was given unawaited.
        await asyncio.sleep(0)
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task failed", exc_info=error)
