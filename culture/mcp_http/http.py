"""Pages over HTTP, whatever makes them: where they are found, and how long one waits for those who ask."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from culture.mcp_http.admission import is_own

_CONNECTIONS = 512
_RESERVED = 64  # of them for the user who runs this: nobody else on the machine keeps them out
_BACKLOG = 1024
_FAREWELL = 1
PATIENCE = 10.0
"""How long a request may take to come, and up to twice that: connections are few, and anybody can open one."""


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that programs reach there; port 0 takes a free one."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, proto, _, address = found[0]
    with socket.socket(family, kind, proto) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        yield listener


class _Connection(H11Protocol):
    """One whose other end has to say what it wants; how long the answer takes is another matter."""

    _seen: tuple[object, object] = (None, None)
    _since: float = 0.0
    _is_own: bool = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has come."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._is_own = is_own(self.client, self.server)
        present = [each for each in self.connections if isinstance(each, _Connection)]
        others = [each for each in present if not each._is_own]
        if not self._is_own and len(others) > _CONNECTIONS - _RESERVED:
            if not self._make_room(others):
                self._drop()
                return
        elif len(present) >= _CONNECTIONS:
            self._make_room(others) or self._make_room(present)
        self._look()

    def _make_room(self, present: list["_Connection"]) -> bool:
        """End the oldest of these that asks for nothing, else that has not finished its request; is there one?"""
        for is_idle in (_Connection._asks_for_nothing, _Connection._is_unfinished):
            idle = [each for each in present if each is not self and is_idle(each)]
            if idle:
                min(idle, key=lambda each: each._since)._drop()
                return True
        return False

    def _drop(self) -> None:
        """End the connection, and count it no more from now on."""
        self.transport.abort()
        self.connections.discard(self)

    def _asks_for_nothing(self) -> bool:
        return self.conn.their_state is h11.IDLE and (self.cycle is None or self.cycle.response_complete)

    def _is_unfinished(self) -> bool:
        return self.conn.their_state is h11.SEND_BODY

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        now = (self.conn.their_state, self.cycle)
        if now == self._seen and now[0] in (h11.IDLE, h11.SEND_BODY):
            self.transport.abort()
            return
        self._seen = now
        self.loop.call_later(PATIENCE, self._look)


class _Http(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are for whoever runs the process."""
        yield


@asynccontextmanager
async def serving(
    app: ASGIApp, listener: socket.socket, certificate: Path | None = None, key: Path | None = None
) -> AsyncIterator[None]:
    """While this lasts, the pages are served; with a certificate, over TLS alone."""
    config = uvicorn.Config(
        app,
        http=_Connection,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_FAREWELL,
    )
    http = _Http(config)
    task = asyncio.create_task(http.serve(sockets=[listener]))
    try:
        yield
    finally:
        http.should_exit = True
        await task
