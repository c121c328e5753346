"""Reading the history from the loop: in threads of its own, after what was said before is on disk."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from culture.runtime import REAL, Runtime
from culture.skills.history.intake import Intake
from culture.skills.history.store import Store, Unavailable

_THREADS = 2  # for each kind of question
_PATIENCE = 1.0  # for what was just said; while the disk is stuck the answer is what is on it
MOST_SEARCHES = 20
"""So many may wait or be under way, each of which may take a second."""

Result = TypeVar("Result")


class Archive:
    """Asks the store. What is quickly told never waits behind a search, nor either behind what tidies up."""

    def __init__(self, store: Store, intake: Intake, runtime: Runtime = REAL) -> None:
        self.store = store
        self._intake = intake
        self._readers = runtime.pool(_THREADS, "history-reader")
        self._searchers = runtime.pool(_THREADS, "history-searcher")
        self._keepers = runtime.pool(1, "history-keeper")
        self._searches = 0

    async def read(self, ask: Callable[[Store], Result]) -> Result:
        """The answer to what a few rows tell; what the asker said before is part of it."""
        await self._intake.written(_PATIENCE)
        return await self._run(self._readers, ask)

    async def read_all(self, ask: Callable[[Store], Result]) -> Result:
        """The same for who must not lack anything: Unavailable while what came before is not on disk."""
        if not await self._intake.written(_PATIENCE):
            raise Unavailable("what came last is not on disk yet")
        return await self._run(self._readers, ask)

    async def search(self, ask: Callable[[Store], Result]) -> Result:
        """The same where much may have to be looked at; Unavailable where too many want that at once."""
        if self._searches >= MOST_SEARCHES:
            raise Unavailable("many searches are under way, ask again in a moment")
        self._searches += 1
        try:
            await self._intake.written(_PATIENCE)
            return await self._run(self._searchers, ask)
        finally:
            self._searches -= 1

    async def tend(self, act: Callable[[Store], Result]) -> Result:
        """Do what nobody waits for, and may take long."""
        return await self._run(self._keepers, act)

    async def _run(self, threads: Executor, ask: Callable[[Store], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(threads, ask, self.store)

    def close(self) -> None:
        """Ask nothing more; what is under way ends with the store."""
        for threads in (self._readers, self._searchers, self._keepers):
            threads.shutdown(wait=False, cancel_futures=True)
