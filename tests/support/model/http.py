"""As much of HTTP/1.1 as a model server needs."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    """Without the query."""
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> dict[str, Any]:
        """The body."""
        decoded = json.loads(self.content or b"{}")
        assert isinstance(decoded, dict)
        return decoded


async def read(reader: asyncio.StreamReader) -> Asked | None:
    """The next request on a connection; None at its end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        content = await _chunks(reader)
    else:
        content = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target.partition("?")[0], headers, content)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    content = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        content += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return content


class Reply:
    """Writes one response: whole, or as a stream of events."""

    def __init__(self, writer: asyncio.StreamWriter, headers: Mapping[str, str] | None = None) -> None:
        self._writer = writer
        self._headers = headers or {}
        self.streaming = False

    def json(self, body: Mapping[str, object], status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """A whole response."""
        self.whole(json.dumps(body).encode(), status, {"content-type": "application/json", **(headers or {})})

    def whole(self, content: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """A whole response, as bytes."""
        self._head(status, {**(headers or {}), "content-length": str(len(content))})
        self._writer.write(content)

    def event(self, name: str | None, body: Mapping[str, object] | str) -> None:
        """One server-sent event; the first opens the stream."""
        if not self.streaming:
            self.streaming = True
            self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        data = body if isinstance(body, str) else json.dumps(body)
        self._chunk((f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode())

    def end(self) -> None:
        """The end of a stream."""
        if self.streaming:
            self._writer.write(b"0\r\n\r\n")

    def abort(self) -> None:
        """Break the connection off."""
        self._writer.transport.abort()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Overloaded"
        lines = [
            f"HTTP/1.1 {status} {phrase}",
            *(f"{name}: {value}" for name, value in {**headers, **self._headers}.items()),
        ]
        self._writer.write("\r\n".join([*lines, "", ""]).encode())

    def _chunk(self, content: bytes) -> None:
        self._writer.write(b"%x\r\n%b\r\n" % (len(content), content))
