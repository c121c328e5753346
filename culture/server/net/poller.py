"""The poller: one epoll set for all sockets.

A turn handles every ready socket, then writes each client's queue once. So a client gets all lines of a turn in one
write, and the cost of the event loop is paid once per turn instead of once per socket. Code that runs outside of a
socket's event (timers, tasks, signals) does its work in ``with poller.turn()``, for the same effect.
"""

import asyncio
import logging
import os
import selectors
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from culture.runtime import REAL, PollSet, Runtime

log = logging.getLogger(__name__)

READ = 1  # EPOLLIN
WRITE = 4  # EPOLLOUT
_AT_ONCE = 512  # events taken by one poll
# On a single processor, busy polling would take it from the clients.
_LOOKS = 60 if (os.cpu_count() or 1) > 1 else 0

Ready = Callable[[int], None]
Events = list[tuple[int, int]]


class Flushable(Protocol):
    """An object with output that is written at the end of the turn."""

    def flush(self) -> None:
        """Write the output that is queued."""


class Poller:
    """One epoll set for all sockets, served in turns: handle events, then write the output.

    Any event loop can watch it as one descriptor; ``event_loop.ServerLoop`` waits on it directly.
    """

    def __init__(self, *, runtime: Runtime = REAL) -> None:
        self.runtime = runtime
        self._monotonic = runtime.monotonic
        self._set: PollSet = runtime.poll_set() or _Selector()
        self._ready: dict[int, Ready] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_busy = False  # whether the last turn wrote something
        self._in_turn = False
        self.is_driven = False  # whether an event loop waits on this very set
        self.dirty: list[Flushable] = []
        self.now = self._monotonic()
        self.received = self.sent = 0  # bytes of all sockets

    def start(self) -> None:
        """Let the running event loop serve the watched sockets."""
        if not self.is_driven:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._set.fileno(), self.serve, 0)

    def stop(self) -> None:
        """Stop serving the watched sockets, which their owners close."""
        if self._loop is not None:
            self._loop.remove_reader(self._set.fileno())
            self._loop = None
        if not self.is_driven:
            self._set.close()

    def close(self) -> None:
        """Close the epoll set."""
        self._set.close()

    def watch(self, descriptor: int, ready: Ready | None, events: int = READ) -> None:
        """Call ``ready(events)`` when a descriptor is ready; if None, ``serve`` returns the event.

        ``events``: the kinds of events (READ, WRITE) to wait for.
        """
        if ready is not None:
            self._ready[descriptor] = ready
        self._set.register(descriptor, events)

    def change(self, descriptor: int, events: int) -> None:
        """Wait for these kinds of events (READ, WRITE) on a watched descriptor from now on."""
        self._set.modify(descriptor, events)

    def forget(self, descriptor: int) -> None:
        """Stop watching a descriptor; call this before closing it."""
        self._ready.pop(descriptor, None)
        self._set.unregister(descriptor)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Run the block as a turn: output that it queues is written at the end.

        Within another turn the block is a part of that turn: a write may end sessions, which no command expects in its
        middle.
        """
        if self._in_turn:
            yield
            return
        self.now = self._monotonic()
        self._in_turn = True
        try:
            yield
            self._flush()
        finally:
            self._in_turn = False

    def serve(self, timeout: float | None) -> Events:
        """Wait up to ``timeout`` seconds for events, and run one turn that calls their callbacks.

        Returns the events that have no callback. ``timeout`` None waits without limit.
        """
        events = self._wait(timeout)
        self.now = self._monotonic()
        self._in_turn = True
        try:
            others = self._call(events)
            if self.dirty:
                self._flush()
                self._is_busy = True
        finally:
            self._in_turn = False
        return others

    def _call(self, events: Events) -> Events:
        """Call the callbacks of these events; return the events that have none."""
        ready = self._ready
        others = []
        for event in events:
            call = ready.get(event[0])
            if call is not None:
                try:
                    call(event[1])
                except Exception:  # our bug: the other callbacks still run
                    log.exception("a turn failed")
            else:
                others.append(event)
        return others

    def _wait(self, timeout: float | None) -> Events:
        """Return the events of ready descriptors, waiting for them up to ``timeout`` seconds.

        After a write the answer is often on its way. Polling some more times (about 50 µs) costs no more than sleeping
        and waking up, and the answer is served at once.
        """
        if self._is_busy and timeout != 0:
            self._is_busy = False
            for _ in range(_LOOKS):
                events = self._set.poll(0, _AT_ONCE)
                if events:
                    return events
        return self._set.poll(timeout, _AT_ONCE)

    def _flush(self) -> None:
        dirty = self.dirty
        while dirty:
            batch = dirty[:]
            dirty.clear()
            for one in batch:
                try:
                    one.flush()
                except Exception:  # our bug: the other connections still need their flush
                    log.exception("a write failed")


class _Selector:
    """Has the methods of epoll that the poller calls, for systems without epoll (macOS, BSD)."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def fileno(self) -> int:
        fileno: Callable[[], int] = getattr(self._selector, "fileno")  # noqa: B009 (select() has none)
        return fileno()

    def close(self) -> None:
        self._selector.close()

    def register(self, descriptor: int, events: int, /) -> None:
        if events:
            self._selector.register(descriptor, _to_selector(events))

    def modify(self, descriptor: int, events: int, /) -> None:
        self.unregister(descriptor)
        self.register(descriptor, events)

    def unregister(self, descriptor: int, /) -> None:
        if descriptor in self._selector.get_map():
            self._selector.unregister(descriptor)

    def poll(self, timeout: float | None = None, _at_once: int = -1, /) -> Events:
        return [(key.fd, _from_selector(events)) for key, events in self._selector.select(timeout)]


def _to_selector(events: int) -> int:
    return (selectors.EVENT_READ if events & READ else 0) | (selectors.EVENT_WRITE if events & WRITE else 0)


def _from_selector(events: int) -> int:
    return (READ if events & selectors.EVENT_READ else 0) | (WRITE if events & selectors.EVENT_WRITE else 0)
