"""When an answer goes on, and when it never does."""

import asyncio
from collections.abc import Mapping

from tests.support.model.script import Die, Hang, Sleep, Wait

Holding = Wait | Sleep | Hang | Die


class Broken(Exception):
    """The answer ends here, without an end."""


class Pace:
    """Holds an answer where its script says so."""

    def __init__(self, gates: Mapping[str, asyncio.Event], writer: asyncio.StreamWriter) -> None:
        self._gates = gates
        self._writer = writer

    async def hold(self, step: Holding) -> None:
        """Do what the step says; what was written before is sent first."""
        await self._writer.drain()
        match step:
            case Wait(name):
                await self._gates[name].wait()
            case Sleep(seconds):
                await asyncio.sleep(seconds)
            case Hang():
                await asyncio.Event().wait()
            case Die():
                self._writer.transport.abort()
                raise Broken
