"""Processes by pidfd: a pid may be reused for another process, a pidfd never is.

Short commands such as `culture status` load this module, so only the coroutines import asyncio, which takes long.
"""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def pinned(pid: int) -> Iterator[int | None]:
    """Yield a pidfd of the process, closed after the block.

    None if the process no longer exists.
    """
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
    """Return whether the process of the pidfd ``handle`` exits within ``timeout`` seconds.

    Blocks.
    """
    # Not select(), which takes no descriptor from 1,024 on.
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(timeout * 1000))


def end(pid: int, is_same: Callable[[], bool], timeout: float, number: signal.Signals = signal.SIGTERM) -> bool | None:
    """Send a signal to a process and wait up to ``timeout`` seconds; return whether it exited.

    ``number``: the signal. Returns None if there is no such process, or ``is_same()`` says that it is another one. The
    pidfd is opened before ``is_same`` is called, so a reused pid is never signalled.
    """
    with pinned(pid) as handle:
        if handle is None or not is_same():
            return None
        send(handle, number)
        return is_gone(handle, timeout)


def send(handle: int, number: signal.Signals) -> None:
    """Send the signal ``number`` to the process of the pidfd ``handle``, unless it has exited."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, number)


async def wait_gone(pid: int) -> None:
    """Wait until a process, which need not be our child, has exited."""
    with pinned(pid) as handle:
        if handle is not None:
            await wait_end(handle)


async def ends_within(handle: int, seconds: float) -> bool:
    """Return whether the process of the pidfd ``handle`` exits within this many seconds."""
    import asyncio

    try:
        async with asyncio.timeout(seconds):
            await wait_end(handle)
    except TimeoutError:
        return False
    return True


async def end_in_order(handle: int, grace: float, force: float) -> signal.Signals | None:
    """Send SIGTERM to a process, and SIGKILL after ``grace`` seconds if it has not exited.

    Returns the signal that ended the process, or None if it still lives ``force`` seconds after SIGKILL. ``handle`` is
    a pidfd of the process. With a ``grace`` of 0, SIGKILL is sent at once.
    """
    if grace:
        send(handle, signal.SIGTERM)
        if await ends_within(handle, grace):
            return signal.SIGTERM
    send(handle, signal.SIGKILL)
    return signal.SIGKILL if await ends_within(handle, force) else None


async def wait_end(handle: int) -> None:
    """Wait until the process of the pidfd ``handle`` has exited."""
    import asyncio

    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
