"""A loop of the store's own, in a thread: the driver waits there, whoever asks waits here."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, TypeVar

from culture.runtime import REAL, Runtime, Thread
from culture.skills.history.store import Unavailable

Result = TypeVar("Result")
_CLOSED = "the history is closed"


class Loop:
    """Runs coroutines for other threads, from ``start`` to ``stop``; asked for more, it is Unavailable."""

    def __init__(self, runtime: Runtime = REAL) -> None:
        self._runtime = runtime
        self._lock = runtime.lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begin, if that is still to be done."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = self._runtime.thread(self._loop.run_forever, "history-postgres")
                self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do it there, and wait for what comes of it."""
        with self._lock:
            if self._loop is None:
                work.close()
                raise Unavailable(_CLOSED)
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise Unavailable(_CLOSED) from None

    def each(self, source: AsyncGenerator[list[Result], None]) -> Iterator[Result]:
        """What comes of it one by one; it is closed when nobody wants more."""
        try:
            while (some := self.run(_next(source))) is not None:
                yield from some
        finally:
            with suppress(Unavailable):  # it ended with the loop
                self.run(_close(source))

    def stop(self, farewell: Coroutine[Any, Any, None]) -> None:
        """End: whatever still runs there is cancelled, then this is done."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            farewell.close()
            return
        try:
            asyncio.run_coroutine_threadsafe(_end(farewell), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


async def _next(source: AsyncGenerator[list[Result], None]) -> list[Result] | None:
    return await anext(source, None)


async def _close(source: AsyncGenerator[list[Result], None]) -> None:
    await source.aclose()


async def _end(farewell: Coroutine[Any, Any, None]) -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    await farewell
