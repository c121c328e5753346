"""A pipe between a command of the agent and the test."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from tests.support.waiting import PATIENCE


class Fifo:
    """A pipe in the file system between a command of the agent and the test; neither end waits to be opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._file = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def close(self) -> None:
        """The test is over."""
        os.close(self._file)

    def write(self, line: str) -> None:
        """Let a command that reads a line go on."""
        os.write(self._file, line.encode() + b"\n")

    async def read(self) -> str:
        """Wait for what a command writes."""
        loop, written = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._file, written.set)
        try:
            async with asyncio.timeout(PATIENCE):
                await written.wait()
        finally:
            loop.remove_reader(self._file)
        return os.read(self._file, 1024).decode().strip()


MakeFifo = Callable[[], Fifo]
