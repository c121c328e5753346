"""Between the loop and the disk: what is to be kept waits in a bounded line and is written in groups by a thread."""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from culture.runtime import REAL, Runtime

_GROUP = 500
_PASSING = (sqlite3.OperationalError, OSError)  # a full disk, somebody else's lock: it may pass
AGAIN = 1.0
"""Seconds until what did not go is tried once more."""
T = TypeVar("T")
Fact = TypeVar("Fact")
Taken = TypeVar("Taken", contravariant=True)


class Store(Protocol[Taken]):
    """A file; used by one thread at a time."""

    def write(self, facts: Sequence[Taken], /) -> None:
        """Write them in this order; on disk when it returns, none of them when it raises."""

    def close(self) -> None:
        """Nothing more is asked of it."""


File = TypeVar("File", bound=Store[Any])


class Keeping(Generic[Fact, File]):
    """Takes facts on the event loop and writes them elsewhere; ``start`` and ``stop`` it.

    While the disk is full or the file is locked they wait here, also at the beginning. ``tell`` hears of that once,
    and once when it is over; any other error goes to ``failed``. ``before`` is called in the thread before each group
    is written: it may block for a moment, and OSError makes the group wait.
    """

    def __init__(
        self,
        what: str,
        most: int,
        open_store: Callable[[], File],
        tell: Callable[[str], None],
        failed: Callable[[BaseException], None],
        again: float = AGAIN,
        before: Callable[[], None] = lambda: None,
        runtime: Runtime = REAL,
    ) -> None:
        self._what = what
        self._most = most
        self._open = open_store
        self._store: File | None = None
        self._tell = tell
        self._failed = failed
        self._again = again
        self._before = before
        self._waiting: deque[Fact] = deque()
        self._taken = self._written = self._lost = 0
        self._is_troubled = False
        self.opened = asyncio.Event()
        """The file is there, or never will be."""
        self._news, self._end = asyncio.Event(), asyncio.Event()
        self._settled: list[tuple[int, asyncio.Future[None]]] = []
        self._thread = runtime.pool(1, "keeping")
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
        if self._store is not None:
            await self._in_thread(self._store.close)
        self._thread.shutdown(wait=False)

    def add(self, fact: Fact) -> None:
        """Have it written; where too much waits it is lost, which is told."""
        if len(self._waiting) >= self.most_before(fact):
            self._lost += 1
            return
        self._waiting.append(fact)
        self._taken += 1
        self._news.set()

    def most_before(self, fact: Fact) -> int:
        """So many may wait when this one comes."""
        return self._most

    def note_lost(self, count: int, last: Fact) -> None:
        """There is room again, and ``last`` was the last that is written: so many that came since are lost."""

    def mark(self) -> Callable[[], bool]:
        """Note what was added by now: called later, is all of it written?"""
        taken = self._taken
        return lambda: self._written >= taken

    async def settled(self, patience: float) -> bool:
        """Wait until all that was added so far is on disk; False where that takes longer, or some of it is lost."""
        is_whole = not self._lost
        if self._written == self._taken:
            return is_whole
        asked = (self._taken, asyncio.get_running_loop().create_future())
        self._settled.append(asked)
        try:
            async with asyncio.timeout(patience):
                await asked[1]
        except TimeoutError:
            return False
        finally:
            self._settled.remove(asked)
        return is_whole

    async def use(self, work: Callable[[File], T]) -> T:
        """Do something with the file, in the thread that has it; OSError where there is none yet."""
        if self._store is None:
            raise OSError("the file is not open")
        store = self._store
        return await self._in_thread(lambda: work(store))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _run(self) -> None:
        try:
            while self._store is None and await self._try(self._open_it):
                pass
            self.opened.set()
            while self._waiting or not self._end.is_set():
                await self._news.wait()
                self._news.clear()
                while self._waiting and await self._try(self._write):
                    pass
                if self._waiting:
                    self._tell(f"the end: {self._what} that could not be written: {len(self._waiting)}")
                    return
        except Exception as error:
            self._failed(error)
        finally:
            self.opened.set()

    async def _open_it(self) -> None:
        self._store = await self._in_thread(self._open)

    async def _write(self) -> None:
        group = list(islice(self._waiting, _GROUP))
        await self.use(lambda store: self._write_group(store, group))
        for _ in group:
            self._waiting.popleft()
        self._written += len(group)
        for number, future in self._settled:
            if number <= self._written and not future.done():
                future.set_result(None)
        if not self._waiting and (self._is_troubled or self._lost):
            lost = f"lost since too many waited: {self._lost}" if self._lost else "none was lost"
            self._tell(f"{self._what} are written again; {lost}")
            count, self._lost, self._is_troubled = self._lost, 0, False
            if count:
                self.note_lost(count, group[-1])

    def _write_group(self, store: File, group: Sequence[Fact]) -> None:
        self._before()
        store.write(group)

    async def _try(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Do it, or wait for better; is it worth going on?"""
        try:
            await work()
        except _PASSING as error:
            if not self._is_troubled:
                self._is_troubled = True
                self._tell(f"{self._what} cannot be written ({error}); up to {self._most} wait in memory")
            if self._end.is_set():
                return False
            with suppress(TimeoutError):
                async with asyncio.timeout(self._again):
                    await self._end.wait()
        return True
