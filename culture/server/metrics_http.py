"""The HTTP endpoint for metrics: ``GET /metrics``, one request per connection."""

import asyncio
from collections.abc import Callable
from ipaddress import ip_address

from culture.server.metrics import CONTENT_TYPE

_PATIENCE = 5.0  # seconds for a request and its answer
_LARGEST = 8192  # bytes of a request
_MOST = 16  # requests at a time


class MetricsEndpoint:
    """The HTTP server that answers ``GET /metrics``."""

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text
        self._server: asyncio.Server | None = None
        self._asking = 0

    async def start(self, host: str, port: int) -> None:
        """Listen for requests on an address; raises OSError if that fails."""
        self._server = await asyncio.start_server(self._answer, host, port, limit=_LARGEST)

    @property
    def port(self) -> int:
        """Return the port that the metrics endpoint listens on."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        """Stop listening for requests."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._asking += 1
        try:
            async with asyncio.timeout(_PATIENCE):
                writer.write(await self._response(reader) if self._asking <= _MOST else _plain("503 Busy"))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._asking -= 1
            writer.close()

    async def _response(self, reader: asyncio.StreamReader) -> bytes:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, _, rest = head[0].partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if not _is_address(next((line for line in head if line.lower().startswith("host:")), "")):
            return _plain("421 Misdirected Request")
        if method != "GET":
            return _plain("405 Method Not Allowed")
        if path != "/metrics":
            return _plain("404 Not Found")
        return _page("200 OK", CONTENT_TYPE, self._text())


def _is_address(line: str) -> bool:
    """Return whether a ``Host`` header names an IP address or localhost.

    Other names are refused, since a web page elsewhere could use one to read the metrics.
    """
    host = line.partition(":")[2].strip()
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name.lower() in ("", "localhost") or "." not in name:
        return True  # a name without a dot is not on the internet
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _plain(status: str) -> bytes:
    return _page(status, "text/plain", f"{status}\n")


def _page(status: str, kind: str, text: str) -> bytes:
    body = text.encode()
    lines = (f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close", "", "")
    return "\r\n".join(lines).encode() + body
