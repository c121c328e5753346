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

_CONNECTIONS = 512
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
        listener.listen(128)
        yield listener


class _Connection(H11Protocol):
    """One whose other end has to say what it wants; how long the answer takes is another matter."""

    _seen: tuple[object, object] = (None, None)
    _since: float = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has come."""
        super().connection_made(transport)
        self._since = self.loop.time()
        if len(self.connections) >= _CONNECTIONS:
            self._make_room()
        self._look()

    def _make_room(self) -> None:
        """There are as many as may be: whoever has been here longest and asks for nothing goes, so that others may."""
        idle = [each for each in self.connections if isinstance(each, _Connection) and each._asks_for_nothing]
        idle.sort(key=lambda each: each._since)
        for each in idle[: len(self.connections) + 1 - _CONNECTIONS]:
            each.transport.abort()

    @property
    def _asks_for_nothing(self) -> bool:
        return self.conn.their_state is h11.IDLE and (self.cycle is None or self.cycle.response_complete)

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
