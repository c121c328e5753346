"""One client at a daemon's socket: its lines in, and the answers out as they become ready."""

import asyncio
import logging
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from culture.clients.shared.desk import RequestFailed
from culture.clients.shared.ipc import STOPPING, BadLine, Lines, Request, Response, decode_request, encode
from culture.runtime import REAL, Runtime

log = logging.getLogger(__name__)

Handle = Callable[[Request], Awaitable[object]]

_CHUNK = 1 << 16
WAITS = "irc_ask"
"""The request that ends when nobody waits for its answer any more; every other is done to its end."""
_LOOK_EVERY = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may take."""

    clients: int = 64
    in_flight: int = 32
    line_patience: float = 30.0
    """How long a line that has begun may take."""
    write_patience: float = 30.0
    """How long a client may leave its answers unread."""
    unread: int = 1 << 18
    """How many bytes may wait for it before whispers pass it by."""
    noise: int = 1 << 26
    """How long a line may be that is thrown away, before its sender is."""
    grace: float = 5.0
    """How long a request goes on whose client has gone."""
    farewell: float = 0.5
    """How long requests go on when the daemon stops."""


class Connection:
    """A client. Several of its requests may be in flight; each answer carries the id of its request."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        handle: Handle,
        whispers: Callable[["Connection", Request], Iterable[bytes]],
        unheard: Callable[[object], None],
        limits: Limits,
        *,
        runtime: Runtime = REAL,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._handle = handle
        self._whispers = whispers
        self._unheard = unheard
        self._limits = limits
        self._runtime = runtime
        self._lines = Lines()
        self._open: dict[str, Request] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    @property
    def waits_for(self) -> list[Request]:
        """The requests that are not answered yet."""
        return list(self._open.values())

    async def serve(self) -> None:
        """Answer until the client has gone."""
        try:
            await self._read()
            await self._finish()
        except ConnectionError:
            pass
        finally:
            await self._cancel()
            await self._close()

    async def take_leave(self) -> None:
        """Let what is nearly done be answered, and tell the others that the daemon stops."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._limits.farewell)
        for request in self.waits_for:
            self._put(Response(request.id, False, error=STOPPING))
        await self._cancel()

    async def refuse(self, error: str) -> None:
        """Say why it is not served, and close."""
        await self._send(Response(None, False, error=error))
        await self._close()

    def offer(self, line: bytes) -> bool:
        """Say something nobody asked for; False when the client does not listen."""
        if self._has_gone() or self._writer.transport.get_write_buffer_size() > self._limits.unread:
            return False
        self._writer.write(line)
        return True

    async def _read(self) -> None:
        while not self._writer.is_closing():
            try:
                async with asyncio.timeout(self._limits.line_patience if self._lines.is_within else None):
                    chunk = await self._reader.read(_CHUNK)
            except TimeoutError:
                return await self.refuse(f"a line without its newline for {self._limits.line_patience:g} s")
            if not chunk:
                if self._lines.is_within:
                    await self._send(Response(None, False, error="the last line has no newline"))
                return None
            for line in self._lines.feed(chunk):
                await self._take(line)
            if self._lines.dropped > self._limits.noise:
                return await self.refuse("a line without an end")

    async def _take(self, line: bytes | None) -> None:
        try:
            if line is None:
                raise BadLine("a line longer than 1 MiB is not read")
            request = decode_request(line)
            if request.id in self._open:
                raise BadLine(f"a request with the id {request.id!r} is still in flight", request.id)
            if len(self._tasks) >= self._limits.in_flight:
                raise BadLine(f"more than {self._limits.in_flight} requests in flight", request.id)
        except BadLine as bad:
            await self._send(Response(bad.id, False, error=str(bad)))
            return
        self._open[request.id] = request
        task = asyncio.create_task(self._answer(request), name=request.type)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _answer(self, request: Request) -> None:
        response = await self._response(request)
        if self._has_gone():
            # It hung up as the answer came, before anybody could end its wait.
            if request.type == WAITS and response.ok:
                self._unheard(response.data)
        else:
            for line in self._whispers(self, request):
                self._writer.write(line)
        del self._open[request.id]
        await self._send(response)

    async def _response(self, request: Request) -> Response:
        try:
            return Response(request.id, True, await self._handle(request))
        except RequestFailed as failed:
            return Response(request.id, False, error=str(failed))
        except Exception as error:
            log.exception("request %s failed", request.type)
            return Response(request.id, False, error=f"the daemon failed ({type(error).__name__}); its log says why")

    def _put(self, response: Response) -> None:
        try:
            line = encode(response)
        except (TypeError, ValueError, RecursionError) as error:
            log.error("an answer that is not JSON: %s", error)
            line = encode(Response(response.id, False, error="the daemon failed: its answer is not JSON"))
        if not self._writer.is_closing():
            self._writer.write(line)

    async def _send(self, response: Response) -> None:
        self._put(response)
        await self._drain()

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(self._limits.write_patience):
                await self._writer.drain()
        except TimeoutError:
            log.warning("a client does not read its answers; closed")
            self._writer.transport.abort()
        except ConnectionError:
            pass

    async def _finish(self) -> None:
        """The client says no more: it may still listen (``nc -N``), or be gone."""
        while self._tasks and not self._has_gone():
            await asyncio.wait(self._tasks, timeout=_LOOK_EVERY)
        for task in self._tasks:
            if task.get_name() == WAITS:
                # Else the answer of a person would go to nobody.
                task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._limits.grace)

    def _has_gone(self) -> bool:
        if self._writer.is_closing():
            return True
        sock = self._writer.get_extra_info("socket")
        return sock is not None and self._runtime.is_hung_up(sock)

    async def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _close(self) -> None:
        self._writer.close()
        try:
            async with asyncio.timeout(self._limits.farewell):
                await self._writer.wait_closed()
        except TimeoutError:
            self._writer.transport.abort()
        except ConnectionError:
            pass


def peer_uid(writer: asyncio.StreamWriter) -> int | None:
    """Whose process is at the other end; None where the system does not tell."""
    credentials = _peer(writer)
    return None if credentials is None else credentials[1]


def peer_pid(writer: asyncio.StreamWriter) -> int | None:
    """Which process is at the other end; None where the system does not tell."""
    credentials = _peer(writer)
    return None if credentials is None else credentials[0]


def _peer(writer: asyncio.StreamWriter) -> tuple[int, ...] | None:
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    credentials = struct.Struct("3i")
    raw = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size)
    return credentials.unpack(raw)
