"""A client of a daemon's socket that says exactly what a test wants."""

import asyncio
import json
from pathlib import Path
from typing import Any, Self

from tests.support.waiting import PATIENCE


class Wire:
    """A connection to a daemon's socket."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_unix_connection(str(self._path), limit=1 << 26)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            pass

    def raw(self, data: bytes) -> None:
        """Send these bytes."""
        self._writer.write(data)

    def ask(self, type: str, id: str = "1", **fields: object) -> None:
        """Send a request."""
        self.raw(json.dumps({"type": type, "id": id, **fields}).encode() + b"\n")

    def say_no_more(self) -> None:
        """Close the way there, and go on listening."""
        self._writer.write_eof()

    async def line(self) -> dict[str, Any]:
        """The next line."""
        async with asyncio.timeout(PATIENCE):
            line = await self._reader.readline()
        assert line, "the connection was closed"
        decoded = json.loads(line)
        assert isinstance(decoded, dict)
        return decoded

    async def call(self, type: str, id: str = "1", **fields: object) -> dict[str, Any]:
        """Send a request; the next line."""
        self.ask(type, id, **fields)
        return await self.line()

    async def closed(self) -> bool:
        """Wait until the other side hangs up; whether it did so without a further word."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self._reader.read() == b""
            except ConnectionResetError:
                return True
