"""A daemon's socket server without a socket: programs of the same process call it by its own lines and checks.

Nothing here touches the machine, so many daemons can run in one process, in a simulator too.
"""

import asyncio
from collections.abc import Callable
from itertools import count

from culture.clients.shared.desk import RequestFailed
from culture.clients.shared.ipc import Lines, Request, Response, Whisper, decode_answer, encode
from culture.clients.shared.socket_server import SocketServer

_CHUNK = 1 << 16


class InProcessServer(SocketServer):
    """For ``AgentDaemon(socket_server=...)``: who wants to ask the daemon calls ``connect``."""

    _serving: dict[asyncio.Task[None], None] | None = None

    async def start(self) -> None:
        self._serving = {}

    async def stop(self) -> None:
        serving, self._serving = self._serving, None
        await self.end_clients()
        await asyncio.gather(*(serving or ()), return_exceptions=True)

    def connect(self) -> "InProcessClient":
        """A client of its own, as a program that opens the socket; ConnectionRefusedError while nobody listens."""
        if self._serving is None:
            raise ConnectionRefusedError(str(self.path))
        (reader, writer), (far_reader, far_writer) = stream_pair()
        task = asyncio.create_task(self.serve(far_reader, far_writer, None), name="in-process client")
        self._serving[task] = None
        task.add_done_callback(lambda task: self._serving is not None and self._serving.pop(task, None))
        return InProcessClient(reader, writer)


class InProcessClient:
    """A program that asks a daemon; several requests may be in flight."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.whispers: list[Whisper] = []
        self._writer = writer
        self._numbers = count(1)
        self._waiting: dict[str | None, asyncio.Future[Response]] = {}
        self._reading = asyncio.create_task(self._read(reader), name="reader of an in-process client")

    async def call(self, type: str, **fields: object) -> object:
        """The data of the response; RequestFailed when the daemon refuses, ConnectionError when it has gone."""
        request = Request(type, f"request {next(self._numbers)}", fields)
        response = self._waiting[request.id] = asyncio.get_running_loop().create_future()
        if self._reading.done():
            raise ConnectionResetError("the daemon has gone")
        self._writer.write(encode(request))
        try:
            answer = await response
        finally:
            self._waiting.pop(request.id)
        if not answer.ok:
            raise RequestFailed(answer.error or "")
        return answer.data

    async def close(self) -> None:
        """Hang up; what is in flight is not waited for."""
        self._writer.close()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        lines = Lines(1 << 28)
        try:
            while chunk := await reader.read(_CHUNK):
                for line in lines.feed(chunk):
                    if line is not None:
                        self._take(decode_answer(line))
        finally:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(ConnectionResetError("the daemon has gone"))

    def _take(self, answer: Response | Whisper) -> None:
        if isinstance(answer, Whisper):
            self.whispers.append(answer)
        elif (waiting := self._waiting.get(answer.id)) is not None and not waiting.done():
            waiting.set_result(answer)


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def stream_pair() -> tuple[Streams, Streams]:
    """Both ends of a connection in memory: what one writes the other reads, in the next turn of the loop."""
    loop = asyncio.get_running_loop()
    ends: list[tuple[asyncio.StreamReader, asyncio.StreamReaderProtocol, _Pipe]] = []
    for _ in range(2):
        reader = asyncio.StreamReader(limit=1 << 20, loop=loop)
        ends.append((reader, asyncio.StreamReaderProtocol(reader, loop=loop), _Pipe(loop)))
    for (_, protocol, pipe), (_, _, other) in zip(ends, reversed(ends), strict=True):
        pipe.join(protocol, other)
        protocol.connection_made(pipe)
    first, second = ((reader, asyncio.StreamWriter(pipe, protocol, reader, loop)) for reader, protocol, pipe in ends)
    return first, second


class _Pipe(asyncio.Transport):
    """One end of a connection in memory. Both end when one is closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._closing = False

    def join(self, protocol: asyncio.Protocol, other: "_Pipe") -> None:
        self._protocol, self._other = protocol, other

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._closing:
            self._loop.call_soon(self._other.take, bytes(data))

    def take(self, data: bytes) -> None:
        if not self._closing:
            self._protocol.data_received(data)

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._end()
        self._loop.call_soon(self._other.hang_up)

    abort: Callable[[], None] = close

    def hang_up(self) -> None:
        """The other end has closed: what it wrote before has arrived."""
        if not self._closing:
            self._protocol.eof_received()
            self._end()

    def _end(self) -> None:
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        """What is written is bounded by the answers to one's own requests."""

    def resume_reading(self) -> None:
        """See ``pause_reading``."""
