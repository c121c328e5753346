"""MessageBus: the bounded queues between the parts of a daemon, so that a slow one holds nobody up."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

Item = TypeVar("Item")
LONGEST = 1000


class Lane(Generic[Item]):
    """A queue with one consumer; when it is full the oldest gives way."""

    def __init__(self, name: str, consume: Callable[[Item], Awaitable[None]], longest: int = LONGEST) -> None:
        self._name = name
        self._consume = consume
        self._items: deque[Item] = deque(maxlen=longest)
        self._something = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def put(self, item: Item) -> None:
        """Hand something over; never waits."""
        self._items.append(item)
        self._something.set()

    def start(self) -> None:
        """Begin to consume."""
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        """Consume no more; what is left is dropped."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            while self._items:
                try:
                    await self._consume(self._items.popleft())
                except Exception:
                    log.exception("%s failed", self._name)


class MessageBus:
    """The lanes of one daemon, started and stopped together."""

    def __init__(self) -> None:
        self._lanes: list[Lane[object]] = []

    def lane(self, name: str, consume: Callable[[Item], Awaitable[None]], longest: int = LONGEST) -> Lane[Item]:
        """A new lane."""
        lane = Lane(name, consume, longest)
        self._lanes.append(lane)  # type: ignore[arg-type]
        return lane

    def start(self) -> None:
        """Begin to consume in all lanes."""
        for lane in self._lanes:
            lane.start()

    async def stop(self) -> None:
        """End them all."""
        for lane in self._lanes:
            await lane.stop()
