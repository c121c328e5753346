"""The HTTP server: a listening socket, connection limits, and a timeout for slow requests."""

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
_RESERVED = 64  # of them for our own user, whom others on this machine must not lock out
_BACKLOG = 1024
_SHUTDOWN_TIMEOUT = 1
PATIENCE = 10.0
"""Seconds (at most twice that) for a request to arrive: connections are few, and anybody can open one."""


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a socket that listens on a host and port; port 0 means any free port."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, proto, _, address = addresses[0]
    with socket.socket(family, kind, proto) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        yield listener


class _Connection(H11Protocol):
    """An HTTP connection that is closed if a request does not arrive within a time limit."""

    _last_state: tuple[object, object] = (None, None)
    _since: float = 0.0
    _is_own: bool = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Set up a new connection: apply the limits on their number, and start the timeout."""
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

        self._check_timeout()

    def _make_room(self, present: list["_Connection"]) -> bool:
        """Abort the oldest idle connection in ``present``, or else the oldest with an open request.

        Returns False if there is neither.
        """
        for is_idle in (_Connection._is_idle, _Connection._is_unfinished):
            idle = [each for each in present if each is not self and is_idle(each)]
            if idle:
                min(idle, key=lambda each: each._since)._drop()
                return True
        return False

    def _drop(self) -> None:
        """Abort this connection, and remove it at once from the set of connections that is counted."""
        self.transport.abort()
        self.connections.discard(self)

    def _is_idle(self) -> bool:
        return self.conn.their_state is h11.IDLE and (self.cycle is None or self.cycle.response_complete)

    def _is_unfinished(self) -> bool:
        return self.conn.their_state is h11.SEND_BODY

    def _check_timeout(self) -> None:
        if self.transport.is_closing():
            return
        now = (self.conn.their_state, self.cycle)
        if now == self._last_state and now[0] in (h11.IDLE, h11.SEND_BODY):
            self.transport.abort()
            return
        self._last_state = now
        self.loop.call_later(PATIENCE, self._check_timeout)


class _Http(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Override uvicorn's method: install no signal handlers, since the caller handles signals."""
        yield


@asynccontextmanager
async def serving(
    app: ASGIApp, listener: socket.socket, certificate: Path | None = None, key: Path | None = None
) -> AsyncIterator[None]:
    """Serve an ASGI application on a listening socket during the block.

    ``certificate``, ``key``: PEM files for TLS; without them, plain HTTP.
    """
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
        timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT,
    )
    http = _Http(config)
    task = asyncio.create_task(http.serve(sockets=[listener]))
    try:
        yield
    finally:
        http.should_exit = True
        await task
