"""Processes by a handle: a number may move on to another process, a handle never does."""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def pinned(pid: int) -> Iterator[int | None]:
    """A handle (pidfd) of the process; None when it is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


def is_gone(handle: int, patience: float) -> bool:
    """Whether the process behind a handle has ended, or does so within this time; blocks."""
    return bool(select.select([handle], [], [], patience)[0])


def end(pid: int, is_it: Callable[[], bool], patience: float, number: signal.Signals = signal.SIGTERM) -> bool | None:
    """Have a process end, and wait for it: whether it went; None when it was gone, or is another by now.

    The process is pinned before its identity is checked, so a recycled pid is never signalled.
    """
    with pinned(pid) as process:
        if process is None or not is_it():
            return None
        try:
            signal.pidfd_send_signal(process, number)
        except ProcessLookupError:
            return True
        return is_gone(process, patience)
