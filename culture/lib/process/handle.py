"""Processes by a pidfd: a number may move on to another process, a pidfd never does."""

import asyncio
import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def pinned(pid: int) -> Iterator[int | None]:
    """Open a pidfd for the process; None when it is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


def is_gone(handle: int, timeout: float) -> bool:
    """Whether the process of a pidfd has ended, or ends within so many seconds; blocks."""
    return bool(select.select([handle], [], [], timeout)[0])


def end(pid: int, is_same: Callable[[], bool], timeout: float, number: signal.Signals = signal.SIGTERM) -> bool | None:
    """Signal a process and wait for its end: True when it ended, None when it was gone or is another by now.

    The process is pinned before ``is_same`` checks its identity, so a reused pid is never signalled.
    """
    with pinned(pid) as handle:
        if handle is None or not is_same():
            return None
        send(handle, number)
        return is_gone(handle, timeout)


def send(handle: int, number: signal.Signals) -> None:
    """Send a signal to the process of a pidfd; one that is gone needs none."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, number)


async def wait_gone(pid: int) -> None:
    """Wait until a process has ended that somebody else started and reaps."""
    with pinned(pid) as handle:
        if handle is not None:
            await wait_end(handle)


async def ends_within(handle: int, seconds: float) -> bool:
    """Whether the process of a pidfd has ended, or ends within so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            await wait_end(handle)
    except TimeoutError:
        return False
    return True


async def end_in_order(handle: int, grace: float, force: float) -> signal.Signals | None:
    """Send SIGTERM, after ``grace`` seconds SIGKILL; returns which one ended it, None where it lives after ``force``.

    A grace of 0 begins with SIGKILL.
    """
    if grace:
        send(handle, signal.SIGTERM)
        if await ends_within(handle, grace):
            return signal.SIGTERM
    send(handle, signal.SIGKILL)
    return signal.SIGKILL if await ends_within(handle, force) else None


async def wait_end(handle: int) -> None:
    """Wait until the process of a pidfd has ended: from then on a pidfd can be read."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
