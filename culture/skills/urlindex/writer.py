"""What waits to be written: a bounded line of facts, taken in groups to a thread of their own."""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice

from culture.skills.urlindex.facts import Fact, Heard
from culture.skills.urlindex.store import Store

MOST = 5_000
"""So many messages may wait; twice as many facts in all, since what is taken back should not be forgotten."""
_GROUP = 500
_PASSING = (sqlite3.OperationalError, OSError)  # a full disk, somebody else's lock: it may pass
_AGAIN = 1.0  # seconds until a write that did not go is tried once more


class Writer:
    """Takes facts on the event loop and writes them elsewhere; ``start`` and ``stop`` it.

    While the disk is full or the file is locked the facts wait here, also at the beginning. ``tell`` hears of that
    once, and once when it is over; any other error goes to ``failed``.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        tell: Callable[[str], None],
        failed: Callable[[BaseException], None],
        again: float = _AGAIN,
    ) -> None:
        self._open = open_store
        self._store: Store | None = None
        self.opened = asyncio.Event()
        """The file is there, or never will be."""
        self._tell = tell
        self._failed = failed
        self._again = again
        self._waiting: deque[Fact] = deque()
        self._taken = self._written = self._lost = 0
        self._news, self._end = asyncio.Event(), asyncio.Event()
        self._settled: list[tuple[int, asyncio.Future[None]]] = []
        self._is_troubled = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="urlindex")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Write from now on."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Write what waits, if it can be written, and end."""
        self._end.set()
        self._news.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown(wait=False)
        if self._store is not None:
            self._store.close()

    def add(self, fact: Fact) -> None:
        """Have it written; where too much waits it is lost, which is told."""
        if len(self._waiting) >= (MOST if isinstance(fact, Heard) else 2 * MOST):
            self._lost += 1
            return
        self._waiting.append(fact)
        self._taken += 1
        self._news.set()

    async def settled(self, patience: float) -> None:
        """Wait until all that was added so far is on disk, but no longer than this."""
        if self._written == self._taken:
            return
        asked = (self._taken, asyncio.get_running_loop().create_future())
        self._settled.append(asked)
        try:
            async with asyncio.timeout(patience):
                await asked[1]
        except TimeoutError:
            pass
        finally:
            self._settled.remove(asked)

    async def _run(self) -> None:
        try:
            while self._store is None and await self._try_to_open():
                pass
            self.opened.set()
            while self._waiting or not self._end.is_set():
                await self._news.wait()
                self._news.clear()
                while self._waiting and await self._write():
                    pass
                if self._waiting:
                    self._tell(f"the end: messages with links that could not be written: {len(self._waiting)}")
                    return
        except Exception as error:
            self._failed(error)
        finally:
            self.opened.set()

    async def _try_to_open(self) -> bool:
        """Open the file; is it worth going on?"""
        try:
            self._store = await asyncio.get_running_loop().run_in_executor(self._thread, self._open)
        except _PASSING as error:
            return await self._wait_for_better(error)
        return True

    async def _write(self) -> bool:
        """Write a group of what waits; is it worth going on?"""
        if self._store is None:
            return False
        group = list(islice(self._waiting, _GROUP))
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._store.write, group)
        except _PASSING as error:
            return await self._wait_for_better(error)
        for _ in group:
            self._waiting.popleft()
        self._written += len(group)
        if not self._waiting:
            self._report()
        for number, future in self._settled:
            if number <= self._written and not future.done():
                future.set_result(None)
        return True

    async def _wait_for_better(self, error: Exception) -> bool:
        if not self._is_troubled:
            self._is_troubled = True
            self._tell(f"links cannot be written ({error}); up to {MOST} messages with links wait in memory")
        if self._end.is_set():
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(self._again):
                await self._end.wait()
        return True

    def _report(self) -> None:
        """All is well again; say so if it was not."""
        if self._lost:
            self._tell(f"links are written again; messages that were lost since too many waited: {self._lost}")
        elif self._is_troubled:
            self._tell("links are written again, none was lost")
        self._lost, self._is_troubled = 0, False
