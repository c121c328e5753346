"""Reading the history from the loop: in threads of its own, after what was said before is on disk."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from culture.skills.history.intake import Intake
from culture.skills.history.store import Store

_THREADS = 2
_PATIENCE = 1.0  # for what was just said; while the disk is stuck the answer is what is on it

Result = TypeVar("Result")


class Archive:
    """Asks the store."""

    def __init__(self, store: Store, intake: Intake) -> None:
        self.store = store
        self._intake = intake
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="history-reader")

    async def read(self, ask: Callable[[Store], Result]) -> Result:
        """The answer; what the asker said before is part of it."""
        await self._intake.written(_PATIENCE)
        return await asyncio.get_running_loop().run_in_executor(self._threads, ask, self.store)

    def close(self) -> None:
        """Ask nothing more."""
        self._threads.shutdown(wait=True, cancel_futures=True)
