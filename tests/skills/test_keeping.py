"""What waits to be written: nobody hears that it is kept before it is, or where it is lost."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from culture.skills.keeping import Keeping
from tests.support.waiting import PATIENCE


class Gate:
    """A file that takes nothing until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.written: list[str] = []

    def write(self, facts: Sequence[str]) -> None:
        assert self.opened.wait(PATIENCE)
        self.written += facts

    def close(self) -> None:
        """Nothing is open."""


@asynccontextmanager
async def keeping(gate: Gate, most: int) -> AsyncIterator[tuple[Keeping[str, Gate], list[str]]]:
    told: list[str] = []
    made = Keeping[str, Gate]("words", most, lambda: gate, told.append, lambda error: told.append(repr(error)))
    made.start()
    try:
        yield made, told
    finally:
        gate.opened.set()
        await made.stop()


async def test_what_was_added_is_settled_once_it_is_written() -> None:
    gate = Gate()
    async with keeping(gate, 10) as (made, told):
        made.add("one")
        asked = asyncio.create_task(made.settled(PATIENCE))
        await asyncio.sleep(0)
        assert not asked.done() and not gate.written
        gate.opened.set()
        assert await asked and gate.written == ["one"] and not told


async def test_what_found_no_room_is_not_called_settled() -> None:
    gate = Gate()
    async with keeping(gate, 1) as (made, told):
        made.add("one")
        made.add("two")
        asked = asyncio.create_task(made.settled(PATIENCE))
        await asyncio.sleep(0)
        gate.opened.set()
        assert not await asked
    assert gate.written == ["one"] and told == ["words are written again; lost since too many waited: 1"]
