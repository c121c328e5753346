"""The daemon's ear for its agent: a Unix socket, requests in, responses and whispers out."""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from culture.clients.shared.desk import RequestFailed
from culture.clients.shared.ipc import Request, Whisper, encode
from culture.clients.shared.socket_connection import Connection, Handle, Limits, peer_pid, peer_uid
from culture.clients.shared.socket_file import SocketFile
from culture.config.process_owner import agent_of, name_of
from culture.protocol.text import Profile, one_line
from culture.runtime import REAL, Runtime

log = logging.getLogger(__name__)

MOST_WHISPERS = 100
DEFAULT_LIMITS = Limits()


class SocketServer:
    """Serves the clients of one socket, those of the daemon's own user alone.

    ``handle`` answers a request with the response's data, or raises RequestFailed. ``carries`` says with which types
    of request the agent hears its whispers: a person who looks at the status must not take them away. ``for_people``
    says which types are refused when they come from a process of an agent. ``unheard`` is given the answer to a
    question whose client has gone as it came.
    """

    def __init__(
        self,
        path: Path,
        handle: Handle,
        *,
        carries: Callable[[str], bool] = lambda type: True,
        for_people: Callable[[str], bool] = lambda type: False,
        unheard: Callable[[object], None] = lambda data: None,
        alias: Path | None = None,
        limits: Limits = DEFAULT_LIMITS,
        runtime: Runtime = REAL,
    ) -> None:
        self.path = path
        self._handle = handle
        self._carries = carries
        self._for_people = for_people
        self._unheard = unheard
        self._limits = limits
        self._runtime = runtime
        self._alias = alias
        self._file: SocketFile | None = None
        self._server: asyncio.Server | None = None
        self._clients: dict[Connection, asyncio.Task[None]] = {}
        # Each whisper with the clients that have heard it, but were not the agent's call.
        self._whispers: deque[tuple[Whisper, dict[Connection, None]]] = deque(maxlen=MOST_WHISPERS)

    async def start(self) -> None:
        """Listen; SocketTaken when the socket cannot be had."""
        self._file = SocketFile(self.path, self._alias, runtime=self._runtime)
        self._server = await asyncio.start_unix_server(self._accept, sock=self._file.socket)

    async def stop(self) -> None:
        """Close the socket, and tell those who still wait."""
        if self._server is None or self._file is None:
            return
        self._server.close()
        self._file.remove()
        self._server = self._file = None
        await self.end_clients()

    async def end_clients(self) -> None:
        """Tell those who still wait, and end the connections."""
        clients = dict(self._clients)
        await asyncio.gather(*(client.take_leave() for client in clients))
        for task in clients.values():
            task.cancel()
        await asyncio.gather(*clients.values(), return_exceptions=True)

    def whisper(self, whisper_type: str, message: str) -> None:
        """Tell the agent: at once where it listens, and with its next call where it does not."""
        whisper = Whisper(whisper_type, one_line(message, Profile.MODEL))
        heard = {client: None for client in self._clients if client.offer(encode(whisper))}
        if not any(self._carries(request.type) for client in heard for request in client.waits_for):
            self._whispers.append((whisper, heard))

    def take_whispers(self) -> list[Whisper]:
        """What no call has carried to the agent yet; who takes it delivers it."""
        taken = [whisper for whisper, _ in self._whispers]
        self._whispers.clear()
        return taken

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        uid = peer_uid(writer)
        if uid is not None and uid != os.geteuid():
            log.warning("user %d tried to use %s", uid, self.path)
            await self._client(reader, writer, None).refuse("this socket belongs to another user")
        else:
            await self.serve(reader, writer, peer_pid(writer))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int | None) -> None:
        """Serve a client until it has gone; ``pid`` is its process, None where that cannot be known."""
        client = self._client(reader, writer, pid)
        task = asyncio.current_task()
        assert task is not None
        if len(self._clients) >= self._limits.clients:
            await client.refuse(f"{self._limits.clients} clients are connected; there is no room for more")
        else:
            self._clients[client] = task
            try:
                await client.serve()
            except asyncio.CancelledError:
                pass  # stop() ended it, and the streams of Python 3.11 would log that as an error
            finally:
                self._forget(client)

    def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int | None) -> Connection:
        handle = partial(self._answer, pid)
        return Connection(reader, writer, handle, self._delivered, self._unheard, self._limits, runtime=self._runtime)

    async def _answer(self, pid: int | None, request: Request) -> object:
        """Answer a request of this process, if it may ask that; who has ended may have left its socket to anybody."""
        if pid is not None and self._for_people(request.type):
            if agent := await asyncio.to_thread(agent_of, pid):
                raise RequestFailed(f"{request.type} is for people, and you are {agent}: ask one of them")
            if pid and not name_of(pid):
                raise RequestFailed(
                    f"{request.type} is for people, and the process that connected has ended: ask again"
                )
        return await self._handle(request)

    def _delivered(self, client: Connection, request: Request) -> Iterator[bytes]:
        """The whispers that go out before the response to this request."""
        if not self._carries(request.type):
            return
        while self._whispers:
            whisper, heard = self._whispers.popleft()
            if client not in heard:
                yield encode(whisper)

    def _forget(self, client: Connection) -> None:
        del self._clients[client]
        for _, heard in self._whispers:
            heard.pop(client, None)
