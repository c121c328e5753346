"""Blocking work in a thread of its own, awaited as a future."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from culture.runtime import REAL, Runtime

Result = TypeVar("Result")


def in_thread(work: Callable[[], Result], name: str, *, runtime: Runtime = REAL) -> "asyncio.Future[Result]":
    """Run ``work`` in a daemon thread called ``name``; return a future of its result.

    The end of the program does not wait for the thread, nor does a caller that cancels the future. Unlike
    ``asyncio.to_thread`` it needs no free place in a pool, so work that waits for other work cannot block it.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: BaseException | None) -> None:
        if not future.done():
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(settle, result, error)

    runtime.thread(run, name).start()
    return future
