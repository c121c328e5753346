"""A network between two programs that does as it is told: it cuts, swallows, delays, slows down and interferes."""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Literal

from tests.support.clock import sleep
from tests.support.ports import bound, reserved
from tests.support.waiting import PATIENCE

Side = Literal["client", "server"]
"""A direction is named by the side towards which it leads; the client is who connected to the proxy."""

_AT_ONCE = 1 << 16
_UNDERWAY = 1 << 18
_KERNEL_BUFFER = 1 << 16
_RECORDED = 1 << 24
_STEPS_PER_SECOND = 20
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class _Weather:
    """How one direction is for all connections, and what was seen in it."""

    def __init__(self) -> None:
        self.passable = asyncio.Event()
        self.passable.set()
        self.delay = 0.0
        self.rate: float | None = None
        self.seen = bytearray()

    def record(self, data: bytes) -> None:
        self.seen += data[: _RECORDED - len(self.seen)]


class _Way:
    """One direction of one connection: what was read waits its turn, in order; so much and no more."""

    def __init__(self, weather: _Weather, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._weather = weather
        self._reader = reader
        self._writer = writer
        writer.transport.set_write_buffer_limits(0)
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._size = 0
        self._changed = asyncio.Event()

    async def pass_on(self, told: Callable[[], None]) -> None:
        """Carry everything until the end of it; ``told`` hears of each piece that came."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._read(told))
            group.create_task(self._write())

    def put(self, data: bytes) -> None:
        """Let this follow what is underway; nothing is the end."""
        due = asyncio.get_running_loop().time() + self._weather.delay
        self._waiting.append((due, data))
        self._size += len(data)
        self._changed.set()

    async def _read(self, told: Callable[[], None]) -> None:
        data = b"-"
        while data:
            await self._until(lambda: self._size < _UNDERWAY)
            await self._weather.passable.wait()
            data = await self._reader.read(_AT_ONCE)
            self._weather.record(data)
            self.put(data)
            told()

    async def _write(self) -> None:
        data = b"-"
        while data:
            await self._until(lambda: bool(self._waiting))
            due, data = self._waiting[0]
            await sleep(max(0.0, due - asyncio.get_running_loop().time()))
            await self._weather.passable.wait()
            await self._hand_over(data)
            self._waiting.popleft()
            self._size -= len(data)
            self._changed.set()
        self._writer.write_eof()

    async def _hand_over(self, data: bytes) -> None:
        """As fast as the line is."""
        while data:
            rate = self._weather.rate
            step = len(data) if rate is None else max(1, int(rate / _STEPS_PER_SECOND))
            self._writer.write(data[:step])
            await self._writer.drain()
            if rate is not None:
                await sleep(len(data[:step]) / rate)
            data = data[step:]
            await self._weather.passable.wait()

    async def _until(self, fact: Callable[[], bool]) -> None:
        while not fact():
            self._changed.clear()
            await self._changed.wait()


class _Connection:
    """A client's connection to the proxy and the one that the proxy makes for it."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self._sockets = (client, server)
        self._writers: list[asyncio.StreamWriter] = []
        self.ways: dict[Side, _Way] = {}

    async def carry(self, port: int, weather: dict[Side, _Weather], told: Callable[[], None]) -> None:
        """Lead to this port, until both sides have ended it or one broke it; what breaks shows when the way is free."""
        try:
            await _passable(weather)
            await asyncio.get_running_loop().sock_connect(self._sockets[1], ("127.0.0.1", port))
            from_client, to_client = await self._streams(self._sockets[0])
            from_server, to_server = await self._streams(self._sockets[1])
            self.ways["server"] = _Way(weather["server"], from_client, to_server)
            self.ways["client"] = _Way(weather["client"], from_server, to_client)
            async with asyncio.TaskGroup() as group:
                for way in self.ways.values():
                    group.create_task(way.pass_on(told))
            for writer in self._writers:
                writer.close()
                await writer.wait_closed()
        except* OSError:
            await _passable(weather)
        finally:
            self._reset()

    async def _streams(self, of: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Those of one side, closed at the end even if a cut comes before there are those of the other."""
        reader, writer = await asyncio.open_connection(sock=of)
        self._writers.append(writer)
        return reader, writer

    def _reset(self) -> None:
        """End what has not ended yet, at once and without a farewell."""
        for each in self._sockets:
            with suppress(OSError):  # it is closed
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        for writer in self._writers:
            writer.transport.abort()
        self.close()

    def close(self) -> None:
        """Give back what the kernel holds."""
        for each in self._sockets:
            each.close()


class Proxy:
    """Passes connections to ``port`` on to a server; ``proxied`` makes one."""

    def __init__(self, port: int, server: int) -> None:
        self.port = port
        self.accepted = 0
        """How many connections have come so far."""
        self._server = server
        self._weather: dict[Side, _Weather] = {"client": _Weather(), "server": _Weather()}
        self._connections: dict[asyncio.Task[None], _Connection] = {}
        self._listening: socket.socket | None = None
        self._news = asyncio.Event()
        self._failure: BaseException | None = None
        self.heal()

    @property
    def connections(self) -> int:
        """How many there are, whole or half open."""
        return len(self._connections)

    def cut(self) -> None:
        """Reset every connection on both sides, and refuse new ones until ``heal``."""
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
            self._listening = None
        for task in self._connections:
            task.cancel()

    def drop(self, towards: Side | None = None) -> None:
        """Let nothing pass, in one direction or in both, and nobody notice; what is underway waits for ``heal``.

        New connections seem to succeed, since the kernel accepts them, but lead nowhere.
        """
        for side, weather in self._weather.items():
            if towards in (None, side):
                weather.passable.clear()

    def heal(self) -> None:
        """Let everything pass again, old connections that were not cut and new ones."""
        for weather in self._weather.values():
            weather.passable.set()
        if self._listening is None:
            self._listening = bound(self.port)
            _small_buffers(self._listening)
            self._listening.listen()
            asyncio.get_running_loop().add_reader(self._listening, self._accept, self._listening)

    def delay(self, seconds: float) -> None:
        """Let everything that comes from here on take so long, in either direction; its order stays."""
        for weather in self._weather.values():
            weather.delay = seconds

    def throttle(self, bytes_per_second: float | None) -> None:
        """Let so much pass in a second, in either direction; None is no limit."""
        for weather in self._weather.values():
            weather.rate = bytes_per_second

    def garbage(self, data: bytes, towards: Side) -> None:
        """Say this in the other side's name, on every connection, behind what is underway."""
        for connection in self._connections.values():
            if towards in connection.ways:
                connection.ways[towards].put(data)

    def recorded(self, towards: Side) -> bytes:
        """What was sent in a direction, whether it has arrived or not; the first 16 MB."""
        return bytes(self._weather[towards].seen)

    def forget(self) -> None:
        """Record from here on."""
        for weather in self._weather.values():
            weather.seen.clear()

    async def until(self, fact: Callable[[], bool]) -> None:
        """Wait until this is so; it is looked at whenever a connection comes or goes or something is sent."""
        async with asyncio.timeout(PATIENCE):
            while not fact():
                self._news.clear()
                await self._news.wait()

    async def close(self) -> None:
        """Cut everything, and tell what went wrong in the proxy itself."""
        self.cut()
        if self._connections:
            await asyncio.wait(self._connections)
        if self._failure is not None:
            raise self._failure

    def _accept(self, listening: socket.socket) -> None:
        client, _ = listening.accept()
        client.setblocking(False)
        connection = _Connection(client, _small_buffers(socket.socket()))
        task = asyncio.create_task(connection.carry(self._server, self._weather, self._news.set))
        self._connections[task] = connection
        task.add_done_callback(self._gone)
        self.accepted += 1
        self._news.set()

    def _gone(self, task: asyncio.Task[None]) -> None:
        self._connections.pop(task).close()
        if not task.cancelled():
            self._failure = self._failure or task.exception()
        self._news.set()


async def _passable(weather: dict[Side, _Weather]) -> None:
    for each in weather.values():
        await each.passable.wait()


def _small_buffers(made: socket.socket) -> socket.socket:
    """Otherwise megabytes would be underway where the line is slow."""
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _KERNEL_BUFFER)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BUFFER)
    return made


@asynccontextmanager
async def proxied(server: int) -> AsyncIterator[Proxy]:
    """A proxy in front of a port of loopback, on a port of its own."""
    with reserved() as port:
        proxy = Proxy(port, server)
        try:
            yield proxy
        finally:
            await proxy.close()
