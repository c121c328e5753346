"""A receiver of webhooks on loopback: real HTTP, with or without TLS, and every bad manner there is."""

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tests.support.clock import sleep
from tests.support.waiting import PATIENCE

Answer = Callable[["Receiver", asyncio.StreamWriter], Awaitable[None]]
HOST = "127.0.0.2"
"""Not where everything else listens: a test may list this one and no other."""


@dataclass(frozen=True)
class Received:
    """One post."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def said(self) -> dict[str, Any]:
        """The body as JSON."""
        return dict(json.loads(self.body))


def status(code: int, **headers: str) -> Answer:
    """Answers with this status."""

    async def answer(receiver: "Receiver", writer: asyncio.StreamWriter) -> None:
        lines = [
            f"HTTP/1.1 {code} Whatever",
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
        ]
        writer.write("\r\n".join([*lines, "Content-Length: 0", "", ""]).encode())

    return answer


def raw(data: bytes) -> Answer:
    """Answers with these bytes."""

    async def answer(receiver: "Receiver", writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return answer


async def reset(receiver: "Receiver", writer: asyncio.StreamWriter) -> None:
    """Breaks the connection."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def hold(receiver: "Receiver", writer: asyncio.StreamWriter) -> None:
    """Says nothing until it is let go."""
    await receiver.released.wait()


async def drip(receiver: "Receiver", writer: asyncio.StreamWriter) -> None:
    """Says a little all the time, and never comes to an end."""
    writer.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    with suppress(OSError):
        while not receiver.released.is_set():
            writer.write(b"x")
            await writer.drain()
            await sleep(0.01)


async def endless(receiver: "Receiver", writer: asyncio.StreamWriter) -> None:
    """Succeeds, and says much more than anybody wants to hear."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    with suppress(OSError):
        while not receiver.released.is_set():
            writer.write(b"x" * 65536)
            await writer.drain()


class Receiver:
    """Keeps what was posted; ``answers`` come in order, and after the last a plain 204."""

    def __init__(self) -> None:
        self.posts: list[Received] = []
        self.answers: list[Answer] = []
        self.calls = 0
        self.released = asyncio.Event()
        self.port = 0
        self._came = asyncio.Condition()
        self._busy: set[asyncio.Task[None]] = set()

    def url(self, path: str = "/hook/s3cret", scheme: str = "http", host: str = HOST) -> str:
        """Its address."""
        return f"{scheme}://{host}:{self.port}{path}"

    async def got(self, count: int = 1) -> list[Received]:
        """Wait for so many posts."""
        async with asyncio.timeout(PATIENCE), self._came:
            await self._came.wait_for(lambda: len(self.posts) >= count)
        return self.posts

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one post."""
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        self.calls += 1
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._take(reader)
                answer = self.answers.pop(0) if self.answers else status(204)
                await answer(self, writer)
                await writer.drain()
        finally:
            self._busy.discard(task)
            writer.close()

    async def _take(self, reader: asyncio.StreamReader) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        verb, path, _ = head[0].split(" ")
        assert verb == "POST"
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(headers["Content-Length"]))
        async with self._came:
            self.posts.append(Received(path, headers, body))
            self._came.notify_all()

    async def finish(self) -> None:
        """Let go of all who wait."""
        self.released.set()
        await asyncio.gather(*self._busy, return_exceptions=True)


@asynccontextmanager
async def receiving(tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """A receiver on a port of its own."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, HOST, 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        await receiver.finish()
        await server.wait_closed()
