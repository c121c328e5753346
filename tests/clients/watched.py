"""A runner of a real program, and what it told."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from culture.clients.shared.turn import RunnerSetup, Turn
from culture.lib.process.orphans import end_all
from tests.clients.conformance import Record, processes, programs


class Watched(Record):
    """A runner and what it told."""

    def __init__(self, runner: Any) -> None:
        super().__init__(runner)
        self.runner = runner
        self.token = runner.setup.environment["CULTURE_TOKEN"]
        self._turns_seen = 0

    async def turn(self, prompt: str) -> Turn:
        """Put a prompt and wait for the end of its turn."""
        await self.runner.send_prompt(prompt)
        return await self.next_turn()

    async def next_turn(self) -> Turn:
        """The next turn that ends."""
        await self.until(lambda: len(self.turns) > self._turns_seen)
        self._turns_seen += 1
        return self.turns[self._turns_seen - 1]

    def processes(self) -> dict[int, str]:
        """Its processes that live, with their command lines."""
        return processes(self.token)

    def program(self) -> int:
        """The process of the program itself."""
        (pid,) = programs(self.token)
        return pid


Launch = Callable[..., Watched]


@asynccontextmanager
async def launching(make: Callable[[RunnerSetup], object], setup: RunnerSetup) -> AsyncIterator[Launch]:
    """``launch(thinking="high")``: a runner that is stopped in the end, and not yet started."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(end_all, setup.environment["CULTURE_TOKEN"])

        def launched(**changes: Any) -> Watched:
            watched = Watched(make(replace(setup, **changes)))
            stack.push_async_callback(watched.runner.stop)
            return watched

        yield launched
