"""Server-sent events for all open tabs of one person, resumable without loss.

Events are numbered, and the last 500 are kept. The id of an event is ``<run>.<number>``, where ``run`` is random per
stream. A tab that reconnects sends the id of the last event it got and receives what it missed. If the id is of another
run (the page was restarted, or the connection reopened) or too old, the tab gets ``resync`` instead and reloads what it
shows. Example: a tab at ``a1b2.7`` reconnects while the stream is at ``a1b2.9``, and gets events 8 and 9.
"""

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

_BACKLOG = 500
_MAX_QUEUE = 500

RESYNC = "resync"
"""Event for a tab that missed more than the backlog holds: reload from the history."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event for a person's browser tabs; ``str()`` formats it as a server-sent event."""

    id: str
    kind: str
    data: str

    def __str__(self) -> str:
        return f"id: {self.id}\nevent: {self.kind}\ndata: {self.data}\n\n"


class EventStream:
    """The events for one person's browser tabs, with a queue for each open tab."""

    def __init__(self) -> None:
        self._run = secrets.token_hex(4)
        self._number = 0
        self._backlog: deque[StreamEvent] = deque(maxlen=_BACKLOG)
        self._queues: set[asyncio.Queue[StreamEvent | None]] = set()

    @property
    def listeners(self) -> int:
        """Number of browser tabs that listen."""
        return len(self._queues)

    @property
    def position(self) -> str:
        """Id of the stream's last event; a tab that listens from this id gets the later events."""
        return f"{self._run}.{self._number}"

    @property
    def beginning(self) -> str:
        """Id before the stream's first event; a tab that listens from this id gets every event."""
        return f"{self._run}.0"

    def publish(self, kind: str, data: Mapping[str, object]) -> None:
        """Send an event to all open tabs of the person; ``data`` becomes JSON.

        A tab whose queue is full is disconnected; it reconnects by itself.
        """
        self._number += 1
        event = StreamEvent(f"{self._run}.{self._number}", kind, json.dumps(data))
        self._backlog.append(event)
        for queue in list(self._queues):
            if queue.qsize() >= _MAX_QUEUE:
                self._queues.discard(queue)
                queue.put_nowait(None)
            else:
                queue.put_nowait(event)

    async def listen(self, last: str, every: float) -> AsyncIterator[StreamEvent | None]:
        """Yield the events for one browser tab after the event with id ``last``.

        After ``every`` seconds without an event, None is yielded. If ``last`` is unknown or too old, the first event is
        ``resync``.
        """
        queue: asyncio.Queue[StreamEvent | None] = asyncio.Queue()
        for event in self._missed(last):
            queue.put_nowait(event)
        self._queues.add(queue)
        try:
            while True:
                try:
                    async with asyncio.timeout(every):
                        event_or_end = await queue.get()
                except TimeoutError:
                    yield None
                    continue
                if event_or_end is None:
                    return
                yield event_or_end
        finally:
            self._queues.discard(queue)

    def close(self) -> None:
        """End the event streams of all open tabs."""
        for queue in self._queues:
            queue.put_nowait(None)
        self._queues.clear()

    def _missed(self, last: str) -> list[StreamEvent]:
        here = StreamEvent(self.position, "here", "{}")
        if not last:
            return [here]
        run, _, number = last.partition(".")
        if run != self._run or not number.isdecimal() or int(number) < self._number - len(self._backlog):
            return [StreamEvent(here.id, RESYNC, "{}")]
        behind = self._number - int(number)
        return list(self._backlog)[-behind:] if behind > 0 else [here]
