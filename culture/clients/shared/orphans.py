"""Orphans of the agent: processes whose parent has ended become children of the daemon, and not of init.

By that they still descend from the daemon, and process_owner tells them from a person's. Whoever is their parent has
to reap them, else each stays a zombie. The daemon's other children are reaped by asyncio or by subprocess, within
milliseconds of their end; so a child that is dead at two looks, a second apart, is an orphan that nobody else reaps.
"""

import asyncio
import ctypes
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from culture.config.process_owner import take_daemon_name

log = logging.getLogger(__name__)

BETWEEN_LOOKS = 1.0
_PR_SET_CHILD_SUBREAPER = 36
_PROC = Path("/proc")


@contextmanager
def adopted_orphans() -> Iterator[None]:
    """Be the parent of what the agent's processes leave behind; where the system has no such thing, do nothing."""
    # The kernel gives orphans to the first thread of a process that lives, which is the main one.
    children = _PROC / f"self/task/{os.getpid()}/children"
    try:
        children.read_bytes()
        take_daemon_name()
        _become_subreaper()
    except (OSError, AttributeError) as error:
        log.info("orphans of the agent are not adopted: %s", error)
        yield
        return
    reaper = _Reaper(children)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCHLD, reaper.look_soon)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGCHLD)
        reaper.stop()


class _Reaper:
    """Reaps the dead children that nobody else does."""

    def __init__(self, children: Path) -> None:
        self._children = children
        self._dead: set[int] = set()
        self._next: asyncio.TimerHandle | None = None

    def look_soon(self) -> None:
        """A child has ended; whose it is shows at the second look."""
        if self._next is None:
            self._next = asyncio.get_running_loop().call_later(BETWEEN_LOOKS, self._look)

    def stop(self) -> None:
        """Look no more; what is dead is reaped by init when the daemon has ended."""
        if self._next is not None:
            self._next.cancel()

    def _look(self) -> None:
        self._next = None
        dead = {pid for pid in map(int, self._children.read_text().split()) if _is_dead(pid)}
        for pid in dead & self._dead:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:  # somebody was faster
                continue
        self._dead = dead - self._dead
        if self._dead:
            self.look_soon()


def _is_dead(pid: int) -> bool:
    try:
        return (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except (OSError, IndexError):
        return False


def _become_subreaper() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
