"""What happens, told to every tab a person has open: numbered, so that whoever was gone for a moment hears it all."""

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

_KEPT = 500
_WAITING = 500

RESYNC = "resync"
"""What a tab is told that has missed more than is kept: it reads the history."""


@dataclass(frozen=True, slots=True)
class Happening:
    """One event of a stream."""

    id: str
    kind: str
    data: str

    def __str__(self) -> str:
        return f"id: {self.id}\nevent: {self.kind}\ndata: {self.data}\n\n"


class Hub:
    """The events of one person."""

    def __init__(self) -> None:
        self._run = secrets.token_hex(4)
        self._number = 0
        self._kept: deque[Happening] = deque(maxlen=_KEPT)
        self._queues: set[asyncio.Queue[Happening | None]] = set()

    @property
    def listeners(self) -> int:
        """How many tabs are open."""
        return len(self._queues)

    @property
    def position(self) -> str:
        """Behind the last event: whoever listens from here on misses nothing that comes."""
        return f"{self._run}.{self._number}"

    @property
    def beginning(self) -> str:
        """Before the first event."""
        return f"{self._run}.0"

    def tell(self, kind: str, data: Mapping[str, object]) -> None:
        """Tell all; a tab that does not read is cut off, and comes again."""
        self._number += 1
        happening = Happening(f"{self._run}.{self._number}", kind, json.dumps(data))
        self._kept.append(happening)
        for queue in list(self._queues):
            if queue.qsize() >= _WAITING:
                self._queues.discard(queue)
                queue.put_nowait(None)
            else:
                queue.put_nowait(happening)

    async def listen(self, last: str, every: float) -> AsyncIterator[Happening | None]:
        """What comes, from behind the last one on that a tab had; None when nothing came for so many seconds."""
        queue: asyncio.Queue[Happening | None] = asyncio.Queue()
        for happening in self._missed(last):
            queue.put_nowait(happening)
        self._queues.add(queue)
        try:
            while True:
                try:
                    async with asyncio.timeout(every):
                        happening_or_end = await queue.get()
                except TimeoutError:
                    yield None
                    continue
                if happening_or_end is None:
                    return
                yield happening_or_end
        finally:
            self._queues.discard(queue)

    def close(self) -> None:
        """End all streams."""
        for queue in self._queues:
            queue.put_nowait(None)
        self._queues.clear()

    def _missed(self, last: str) -> list[Happening]:
        here = Happening(self.position, "here", "{}")
        if not last:
            return [here]
        run, _, number = last.partition(".")
        if run != self._run or not number.isdecimal() or int(number) < self._number - len(self._kept):
            return [Happening(here.id, RESYNC, "{}")]
        behind = self._number - int(number)
        return list(self._kept)[-behind:] if behind > 0 else [here]
