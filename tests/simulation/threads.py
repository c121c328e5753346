"""Threads, events, locks and pools of a simulated program.

A thread is a greenlet: it runs until it would block (``Event.wait``, ``sleep``, ``join``, a held lock, a commit), then
control goes back to the host's event loop, and a timer of that loop resumes it. So threads switch at blocking calls
only; races between two bytecodes are not simulated.

A call on the loop's own thread that waits for another thread or for time would stop the whole server. It is noted as a
complaint, and raises. One that waits for the disk stops the program for that time (``Host.wait``), and is a complaint
while others wait for the program.
"""

import asyncio
import sys
from asyncio import events
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit, getcurrent, greenlet

if TYPE_CHECKING:
    from tests.simulation.world import Host

ALLOWED = {
    "_reserve_or_part": "once in so many thousand ids, which must not be used before they are reserved (ids.py)",
}
"""Functions of the product that may wait for the disk on the thread of the event loop, and why."""
_WAKE = 0.00005
_BEGIN = 0.0001

Done = Callable[[Any, BaseException | None], object]


class BlockingCall(AssertionError):
    """The loop's thread was about to wait for another thread or for time."""


class SimThread:
    """A thread of a host, with the methods of ``threading.Thread`` that the product uses."""

    def __init__(self, host: "Host", target: Callable[[], object], name: str) -> None:
        self.host, self.name = host, name
        self.number = host.world.number()
        self._target = target
        self._green: Any = None
        self._is_done = False
        self._joining: list[SimThread] = []

    def start(self) -> None:
        """Start the thread a moment later."""
        self.host.threads = [each for each in self.host.threads if not each._is_done]
        self.host.threads.append(self)
        self._green = greenlet(self._run)
        self._green.thread = self
        self.host.loop.call_later(self.host.world.delay(_BEGIN), self.resume)

    def _run(self) -> None:
        try:
            self._target()
        except GreenletExit:
            pass
        except BaseException as error:
            self.host.world.complain(self.host, f"thread {self.name}", repr(error))
        self._is_done = True
        for each in self._joining:
            self.host.loop.call_soon(each.resume)

    def resume(self) -> None:
        """Continue where the thread waits; called by the event loop, which waits meanwhile."""
        if self._is_done or not self.host.is_alive:
            return
        self._green.parent = getcurrent()
        events._set_running_loop(None)  # a thread has no loop of its own
        try:
            self._green.switch()
        finally:
            events._set_running_loop(self.host.loop)

    def wait(self, seconds: float) -> None:
        """Give control back for so many seconds; called by the thread itself.

        An event or a lock for which it waited earlier may resume it meanwhile; then it goes on waiting.
        """
        world = self.host.world
        until = world.now + seconds
        while world.now < until:
            timer = self.host.loop.call_at(until, self.resume)
            pause()
            timer.cancel()

    def is_alive(self) -> bool:
        """Return whether the thread was started and has not ended."""
        return self._green is not None and not self._is_done

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended, at most ``timeout`` seconds."""
        world = self.host.world
        until = None if timeout is None else world.now + timeout
        while not self._is_done and (until is None or world.now < until):
            caller = calling_thread(self.host, "Thread.join")
            self._joining.append(caller)
            timer = None if until is None else caller.host.loop.call_at(until, caller.resume)
            pause()
            if timer is not None:
                timer.cancel()
            if caller in self._joining:
                self._joining.remove(caller)


def pause() -> None:
    """Give control back to the event loop; the thread continues in ``resume``."""
    getcurrent().parent.switch()


def thread_or_none() -> SimThread | None:
    """Return the thread that runs now; None for the loop's own."""
    return getattr(getcurrent(), "thread", None)


def calling_thread(host: "Host", what: str) -> SimThread:
    """Return the thread that runs now; on the loop's own thread, complain and raise BlockingCall."""
    thread = thread_or_none()
    if thread is None:
        host.world.complain(host, "blocking call", f"{what} on the thread of the event loop")
        raise BlockingCall(f"{what} on the thread of the event loop")
    return thread


def is_allowed() -> bool:
    """Return whether a function that may block the event loop is among the callers."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name in ALLOWED:
            return True
    return False


class SimEvent:
    """A flag that threads wait for."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._is_set = False
        self._waiting: list[SimThread] = []

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self._is_set

    def clear(self) -> None:
        """Clear the flag."""
        self._is_set = False

    def set(self) -> None:
        """Set the flag; each thread that waits continues a moment later."""
        self._is_set = True
        waiting, self._waiting = self._waiting, []
        for thread in waiting:
            thread.host.loop.call_later(self._host.world.delay(_WAKE), thread.resume)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flag is set, at most ``timeout`` seconds; return whether it is."""
        world = self._host.world
        until = None if timeout is None else world.now + timeout
        while not self._is_set and (until is None or world.now < until):
            thread = calling_thread(self._host, "Event.wait")
            self._waiting.append(thread)
            timer = None if until is None else thread.host.loop.call_at(until, thread.resume)
            pause()
            if timer is not None:
                timer.cancel()
            if thread in self._waiting:
                self._waiting.remove(thread)
        return self._is_set


class SimLock:
    """A lock between threads."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._is_held = False
        self._waiting: deque[SimThread] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; return whether it was taken."""
        world = self._host.world
        until = None if timeout < 0 else world.now + timeout
        while self._is_held:
            if not blocking or (until is not None and world.now >= until):
                return False
            thread = calling_thread(self._host, "Lock.acquire")
            self._waiting.append(thread)
            timer = None if until is None else thread.host.loop.call_at(until, thread.resume)
            pause()
            if timer is not None:
                timer.cancel()
            if thread in self._waiting:
                self._waiting.remove(thread)
        self._is_held = True
        return True

    def release(self) -> None:
        """Release the lock; the first that waits takes it next."""
        if not self._is_held:
            raise RuntimeError("release unlocked lock")
        self._is_held = False
        if self._waiting:
            thread = self._waiting.popleft()
            thread.host.loop.call_soon(thread.resume)

    def locked(self) -> bool:
        """Return whether the lock is held."""
        return self._is_held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class SimPool(Executor):
    """A pool of threads: at most so many at once, the others wait their turn."""

    def __init__(self, host: "Host", workers: int, name: str) -> None:
        self._host, self._free, self._name = host, workers, name
        self._waiting: deque[tuple[Callable[[], Any], Done]] = deque()
        self._threads: list[SimThread] = []
        self._has_ended = False

    def add(self, work: Callable[[], Any], done: Done) -> None:
        """Run ``work`` in a thread of the pool, and call ``done`` there with its result and its error."""
        if self._has_ended:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self._waiting.append((work, done))
        self._begin()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run a function in a thread of the pool; only callbacks may wait for the future."""
        future: Future[Any] = Future()
        self.add(lambda: fn(*args, **kwargs), lambda result, error: _finish(future, result, error))
        return future

    def _begin(self) -> None:
        if self._free and self._waiting:
            self._free -= 1
            work, done = self._waiting.popleft()
            thread = SimThread(self._host, lambda: self._run(work, done), self._name)
            self._threads = [each for each in self._threads if each.is_alive()]
            self._threads.append(thread)
            thread.start()

    def _run(self, work: Callable[[], Any], done: Done) -> None:
        result, error = None, None
        try:
            result = work()
        except GreenletExit:
            raise
        except BaseException as caught:
            error = caught
        self._free += 1
        done(result, error)
        self._begin()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no further work; with ``wait`` return when all that was taken is done."""
        self._has_ended = True
        if cancel_futures:
            for _, done in self._waiting:
                done(None, asyncio.CancelledError())
            self._waiting.clear()
        while wait and (running := [each for each in self._threads if each.is_alive()]):
            running[0].join()


def _finish(future: "Future[Any]", result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
