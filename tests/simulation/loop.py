"""The event loop of a host: asyncio's own, which the world runs one step at a time."""

import asyncio
import errno
import heapq
import selectors
import socket
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from tests.simulation.streams import StreamMethods
from tests.simulation.threads import SimPool

if TYPE_CHECKING:
    from tests.simulation.world import Host

NEVER = float("inf")
READY = 0.0


class NoSelector(selectors.BaseSelector):
    """A selector that never waits: the world knows what is ready, and moves the clock."""

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        raise AssertionError("a real descriptor in a simulated program")

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        raise AssertionError("a real descriptor in a simulated program")

    def select(self, timeout: float | None = None) -> list[Any]:
        return []

    def get_map(self) -> dict[Any, Any]:
        return {}


class NumberedTask(asyncio.Task[Any]):
    """A task with a number as its hash: a set of tasks has the same order in each run."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], number: int, **options: Any) -> None:
        self._number = number
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._number


class SimLoop(StreamMethods, asyncio.SelectorEventLoop):
    """Runs the programs of one host at the world's time. ``_run_once`` and everything above it are asyncio's."""

    def __init__(self, host: "Host") -> None:
        self.host, self.world = host, host.world
        self.next_due = NEVER
        """When the next callback or timer is due; ``READY`` for now, ``NEVER`` if there is none."""
        super().__init__(NoSelector())
        self._clock_resolution = 1e-9
        self.set_exception_handler(self._complain)
        self.set_task_factory(lambda loop, coro, **more: NumberedTask(coro, self.world.number(), loop=loop, **more))

    def _complain(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.world.complain(self.host, "loop", f"{context.get('message')}: {context.get('exception')!r}")

    def _make_self_pipe(self) -> None:
        self._ssock = self._csock = None

    def _close_self_pipe(self) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def _process_events(self, event_list: Any) -> None:
        pass

    def time(self) -> float:
        return self.world.now

    def add_reader(self, fd: int, callback: Callable[..., Any], *args: Any) -> None:
        self.host.poll_sets[fd].attach(self, lambda: callback(*args))

    def remove_reader(self, fd: int) -> bool:
        return self.host.poll_sets[fd].detach()

    def add_signal_handler(self, *args: Any) -> None:
        pass

    def remove_signal_handler(self, *args: Any) -> bool:
        return True

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":
        future = self.create_future()
        pool = executor if isinstance(executor, SimPool) else self.host.pool
        pool.add(lambda: func(*args), lambda result, error: self.call_soon(_settle, future, result, error))
        return future

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> list[Any]:
        await asyncio.sleep(self.world.delay(0.0005))
        if self.world.network.machine_at(host) is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, int(port)))]

    async def sock_connect(self, sock: Any, address: Any) -> None:
        if not sock.is_open:
            raise OSError(errno.EBADF, "Bad file descriptor")
        await self.world.network.connect(sock, address)

    # When this loop is due is noted as that changes, so that the world need not ask each host at each step.

    def _call_soon(self, *args: Any) -> Any:
        self.next_due = READY
        return super()._call_soon(*args)  # type: ignore[misc]

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any, **options: Any) -> asyncio.TimerHandle:
        if when < self.next_due:
            self.next_due = when
        return super().call_at(when, callback, *args, **options)

    def note_due(self) -> None:
        """Find out when the next callback or timer is due, after some have run."""
        scheduled = self._scheduled
        while scheduled and scheduled[0]._cancelled:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            self._timer_cancelled_count -= 1
        self.next_due = READY if self._ready else scheduled[0]._when if scheduled else NEVER


def _settle(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if not future.done():
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)
