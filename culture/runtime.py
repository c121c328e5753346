"""The runtime: clock, chance, threads, databases, files and sockets, as one object that can be replaced.

**Problem.** A server's worst bugs need a certain order of events: a crash between two commits, a message that arrives
while a link is cut. On a real machine that order comes by chance and never comes back.

**Rule.** The server, its skills, federation, the IRC client and the agent daemon take everything that differs from run
to run from a ``Runtime`` that they are given: the time, random numbers, threads, connections to SQLite, fsync and
sockets. They import none of ``time``, ``random``, ``secrets``, ``threading`` (``tests/test_architecture.py``), and pass
the runtime on to whatever they make. What asyncio does (timers, streams, ``to_thread``) comes from the event loop.

**Why it is enough.** Programs run with ``REAL``, whose methods are those of the standard library, so nothing is added
to the hot path. The simulator (``tests/simulation``) passes a runtime of its own: many servers and agents run in one
process on a virtual clock, and the same seed gives the same run, byte for byte.
"""

import fcntl
import os
import random
import secrets
import select
import socket
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol


class Thread(Protocol):
    """A thread, as ``threading.Thread``."""

    def start(self) -> None:
        """Start the thread."""

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended, at most ``timeout`` seconds."""

    def is_alive(self) -> bool:
        """Return whether the thread runs."""


class ThreadEvent(Protocol):
    """A flag that threads wait for, as ``threading.Event``."""

    def is_set(self) -> bool:
        """Return whether the flag is set."""

    def set(self) -> None:
        """Set the flag and wake all who wait."""

    def clear(self) -> None:
        """Clear the flag."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flag is set, at most ``timeout`` seconds; return whether it is."""


class ThreadLock(Protocol):
    """A lock between threads, as ``threading.Lock``."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; return whether it was taken."""

    def release(self) -> None:
        """Release the lock."""

    def __enter__(self) -> bool:
        """Take the lock."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Release the lock."""


class PollSet(Protocol):
    """A set of watched descriptors, with the methods of ``select.epoll`` that are used."""

    def fileno(self) -> int:
        """Return the descriptor of the set."""

    def close(self) -> None:
        """Close the set."""

    def register(self, fd: int, eventmask: int, /) -> None:
        """Watch a descriptor for these kinds of events."""

    def modify(self, fd: int, eventmask: int, /) -> None:
        """Watch a descriptor for these kinds of events from now on."""

    def unregister(self, fd: int, /) -> None:
        """Stop watching a descriptor."""

    def poll(self, timeout: float | None = None, maxevents: int = -1, /) -> list[tuple[int, int]]:
        """Return up to ``maxevents`` ready descriptors with their events, waiting up to ``timeout`` seconds."""


class Runtime:
    """The real runtime: the standard library. A simulated one overrides every member."""

    now: Callable[[], float] = staticmethod(time.time)
    """Wall-clock time in seconds since 1970; it can jump."""
    monotonic: Callable[[], float] = staticmethod(time.monotonic)
    """Seconds that never go back."""
    sleep: Callable[[float], None] = staticmethod(time.sleep)
    """Blocks the calling thread for so many seconds; never call it on the event loop's thread."""
    process_time: Callable[[], float] = staticmethod(time.process_time)
    """Processor seconds that this process has used."""
    thread_time: Callable[[], float] = staticmethod(time.thread_time)
    """Processor seconds that the calling thread has used."""

    token_bytes: Callable[[int], bytes] = staticmethod(secrets.token_bytes)
    """So many bytes that nobody can guess."""
    token_hex: Callable[[int], str] = staticmethod(secrets.token_hex)
    """So many bytes that nobody can guess, as hexadecimal text."""
    token_urlsafe: Callable[[int], str] = staticmethod(secrets.token_urlsafe)
    """So many bytes that nobody can guess, as URL-safe text."""
    chance: random.Random = random.Random()
    """Random numbers for jitter and tie breaks; never for secrets."""

    def utc(self) -> datetime:
        """Return the wall-clock time as a datetime in UTC."""
        return datetime.fromtimestamp(self.now(), UTC)

    def local(self) -> datetime:
        """Return the wall-clock time as a datetime in this machine's time zone."""
        return self.utc().astimezone()

    def thread(self, target: Callable[..., object], name: str, *args: object) -> Thread:
        """Make a thread that will call ``target(*args)``; the program's end does not wait for it."""
        return threading.Thread(target=target, name=name, args=args, daemon=True)

    def thread_id(self) -> int:
        """Return a number that identifies the calling thread."""
        return threading.get_ident()

    def event(self) -> ThreadEvent:
        """Make a flag for threads, which is not set."""
        return threading.Event()

    def lock(self) -> ThreadLock:
        """Make a lock for threads, which is free."""
        return threading.Lock()

    def pool(self, workers: int, name: str) -> Executor:
        """Make a pool of at most so many threads, whose names begin with ``name``."""
        return ThreadPoolExecutor(workers, thread_name_prefix=name)

    def connect(self, database: Any, **options: Any) -> sqlite3.Connection:
        """Open a SQLite database, with the options of ``sqlite3.connect``."""
        connection: sqlite3.Connection = sqlite3.connect(database, **options)
        return connection

    write: Callable[[int, bytes | memoryview], int] = staticmethod(os.write)
    """Writes to an open file, which the disk may have no room for; returns how many bytes were written."""
    fsync: Callable[[int], None] = staticmethod(os.fsync)
    """Writes an open file or folder to disk, so that it survives a power loss."""
    flock: Callable[[int, int], None] = staticmethod(fcntl.flock)
    """Locks or unlocks an open file, as ``fcntl.flock``; without LOCK_NB it blocks until the lock is free."""

    def new_socket(
        self, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM, protocol: int = 0
    ) -> socket.socket:
        """Make a socket."""
        return socket.socket(family, kind, protocol)

    socket_owner: Callable[[tuple[str, int], tuple[str, int]], tuple[int, int] | None] | None = None
    """Returns uid and inode of a socket, given its address and that of its peer (port 0: of a listener), or None.

    None: the kernel is asked, by ``culture.config.peer_uid``.
    """

    def is_hung_up(self, sock: Any) -> bool:
        """Return whether both directions of a connected socket are closed; nothing is read from it."""
        poll = select.poll()
        poll.register(sock.fileno(), 0)  # no events: a closed connection is reported all the same
        return bool(poll.poll(0))

    def poll_set(self) -> PollSet | None:
        """Make an epoll set; None on systems without epoll."""
        return select.epoll() if hasattr(select, "epoll") else None


REAL = Runtime()
"""The runtime of programs and of tests over real sockets."""
