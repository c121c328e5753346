"""A plain IRC client for tests: sends lines, waits for facts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from ssl import SSLContext

from culture.protocol.message import Message
from tests.support.waiting import PATIENCE

_tokens = count(1)


class Client:
    """One connection; ``seen`` holds every message so far."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.nick = ""
        self.seen: list[Message] = []

    def send(self, line: str) -> None:
        """Send one line."""
        self.send_raw(line.encode() + b"\r\n")

    def send_raw(self, data: bytes) -> None:
        """Send these very bytes."""
        self.writer.write(data)

    async def line(self) -> bytes:
        """The next line as it came, empty at the end of the connection."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.readline()

    async def receive(self) -> Message:
        """The next message; PINGs of the server are answered on the way."""
        while True:
            raw = await self.line()
            if not raw:
                raise EOFError("the server closed the connection")
            message = Message.parse(raw.decode().rstrip("\r\n"))
            if message.verb == "PING":
                self.send(f"PONG :{message.params[0]}")
                continue
            self.seen.append(message)
            return message

    async def expect(self, verb: str, *params: str | None, where: Callable[[Message], bool] | None = None) -> Message:
        """The next message of this verb with these leading parameters (None: any); what comes before is passed over."""
        while True:
            message = await self.receive()
            if message.verb != verb or (where is not None and not where(message)):
                continue
            if len(message.params) >= len(params) and all(
                wanted is None or wanted == got for wanted, got in zip(params, message.params, strict=False)
            ):
                return message

    async def sync(self) -> list[Message]:
        """Everything that came until now: a PING was answered, so nothing else is on its way."""
        token = f"sync{next(_tokens)}"
        self.send(f"PING {token}")
        got: list[Message] = []
        while True:
            message = await self.receive()
            if message.verb == "PONG" and message.params[-1] == token:
                return got
            got.append(message)

    async def ask(self, line: str) -> list[Message]:
        """Send a line; everything that came in answer."""
        self.send(line)
        return await self.sync()

    async def register(self, nick: str, caps: str = "", password: str = "") -> None:
        """Come in under this nick, with these capabilities, logged in where there is a password."""
        self.nick = nick
        if password:
            self.send(f"PASS {nick}:{password}")
        if caps:
            self.send("CAP LS 302")
            self.send(f"CAP REQ :{caps}")
            await self.expect("CAP", None, "ACK")
        self.send(f"NICK {nick}")
        self.send("USER tester 0 * :A Tester")
        if caps:
            self.send("CAP END")
        await self.expect("001")
        await self.sync()

    async def join(self, channel: str) -> list[Message]:
        """Come into a channel."""
        return await self.ask(f"JOIN {channel}")

    async def ended(self) -> list[Message]:
        """What came until the server closed the connection."""
        got = []
        while True:
            try:
                got.append(await self.receive())
            except (EOFError, ConnectionResetError):
                return got

    def close(self) -> None:
        """Drop the connection without a word."""
        self.writer.close()


@asynccontextmanager
async def connected(port: int, host: str = "127.0.0.1", tls: SSLContext | None = None) -> AsyncIterator[Client]:
    """A connection that has not said anything yet."""
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 20, ssl=tls)
    client = Client(reader, writer)
    try:
        yield client
    finally:
        writer.close()


@asynccontextmanager
async def registered(port: int, nick: str, caps: str = "", password: str = "") -> AsyncIterator[Client]:
    """A client that is in under this nick."""
    async with connected(port) as client:
        await client.register(nick, caps, password)
        yield client
