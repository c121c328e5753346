"""WebSocket as a layer (RFC 6455): the HTTP request, frames, one IRC line per message."""

import base64
import binascii
import hashlib
import re
import struct
from collections.abc import Collection
from enum import IntEnum
from typing import NamedTuple

from culture.protocol.stream import LINE_LIMIT, TAGS_LIMIT
from culture.server.net.layers import LayerError

LONGEST_REQUEST = 8192
MOST_HEADERS = 100
TEXT = "text.ircv3.net"
BINARY = "binary.ircv3.net"
NO_ORIGIN = "none"  # in a list of origins: programs that are no browser, and so send no Origin

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST = re.compile(rf"({_TOKEN}) (\S+) HTTP/(\d\.\d)")
_HEADER = re.compile(rf"({_TOKEN}):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*")
_REASONS = {
    400: "Bad Request",
    403: "Forbidden",
    405: "Method Not Allowed",
    426: "Upgrade Required",
    431: "Request Header Fields Too Large",
}


class HandshakeRefused(Exception):
    """The HTTP request opens no WebSocket; ``answer`` is the HTTP response that says why."""

    def __init__(self, status: int, why: str, *headers: str) -> None:
        super().__init__(why)
        body = f"{why}\r\n".encode()
        fields = ("Connection: close", "Content-Type: text/plain", f"Content-Length: {len(body)}", *headers)
        self.answer = _response(f"{status} {_REASONS[status]}", *fields) + body


class HandshakeAccepted(NamedTuple):
    """The HTTP response to a valid request, and the subprotocol chosen (None: none of ours)."""

    answer: bytes
    subprotocol: str | None


def answer(head: bytes, origins: Collection[str]) -> HandshakeAccepted:
    """Check the HTTP request for a WebSocket and return the response; raises HandshakeRefused.

    ``head``: the request without its empty line. ``origins``: the web origins that may connect.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    request = _REQUEST.fullmatch(first)
    if request is None or request[3] != "1.1":
        raise HandshakeRefused(400, "This is a WebSocket for IRC and speaks HTTP/1.1.")
    if request[1] != "GET":
        raise HandshakeRefused(405, "Only GET is of use here.", "Allow: GET")
    headers = _headers(lines)
    if "websocket" not in _words(headers, "upgrade") or "upgrade" not in _words(headers, "connection"):
        raise HandshakeRefused(
            426, "This is a WebSocket for IRC, not a web page.", "Upgrade: websocket", "Connection: Upgrade"
        )
    if "content-length" in headers or "transfer-encoding" in headers:
        raise HandshakeRefused(400, "The request must have no body.")
    _one(headers, "host")
    _check_origin(headers, origins)
    if _one(headers, "sec-websocket-version") != "13":
        raise HandshakeRefused(426, "Version 13 is the one.", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
    return _accept(_one(headers, "sec-websocket-key"), _words(headers, "sec-websocket-protocol"))


def _accept(key: str, offered: list[str]) -> HandshakeAccepted:
    try:
        is_key = len(base64.b64decode(key, validate=True)) == 16
    except (binascii.Error, ValueError):
        is_key = False
    if not is_key:
        raise HandshakeRefused(400, "Sec-WebSocket-Key is wrong.")
    proof = base64.b64encode(hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest()).decode()
    chosen = next((name for name in offered if name in (TEXT, BINARY)), None)
    subprotocol = (f"Sec-WebSocket-Protocol: {chosen}",) if chosen else ()
    upgrade = ("Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Accept: {proof}", *subprotocol)
    return HandshakeAccepted(_response("101 Switching Protocols", *upgrade), chosen)


def _check_origin(headers: dict[str, list[str]], origins: Collection[str]) -> None:
    # A web page may open a socket to any address that its reader can reach, this machine included.
    values = headers.get("origin", [])
    allowed = (NO_ORIGIN in origins) if not values else (len(values) == 1 and values[0].lower() in origins)
    if not allowed or values == [NO_ORIGIN]:
        raise HandshakeRefused(403, "This Origin may not connect: see listen[].websocket.origins of the server.")


def _headers(lines: list[str]) -> dict[str, list[str]]:
    if len(lines) > MOST_HEADERS:
        raise HandshakeRefused(431, "Too many header fields.")
    headers: dict[str, list[str]] = {}
    for line in lines:
        field = _HEADER.fullmatch(line)
        if field is None:
            raise HandshakeRefused(400, "A header field is malformed.")
        headers.setdefault(field[1].lower(), []).append(field[2])
    return headers


def _one(headers: dict[str, list[str]], name: str) -> str:
    values = headers.get(name, [])
    if len(values) != 1:
        raise HandshakeRefused(400, f"One field {name} is needed.")
    return values[0]


def _words(headers: dict[str, list[str]], name: str) -> list[str]:
    return [word.strip().lower() for value in headers.get(name, []) for word in value.split(",")]


def _response(status: str, *headers: str) -> bytes:
    return "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *headers, "")).encode()


LONGEST_MESSAGE = TAGS_LIMIT + LINE_LIMIT

_CONTROL_LIMIT = 125
_FIN, _RESERVED, _OPCODE, _MASKED, _LENGTH = 0x80, 0x70, 0x0F, 0x80, 0x7F


class Opcode(IntEnum):
    """The kinds of WebSocket frames."""

    CONTINUATION = 0x0
    TEXT = 0x1
    BINARY = 0x2
    CLOSE = 0x8
    PING = 0x9
    PONG = 0xA


_OPCODES = frozenset(Opcode)


class CloseCode(IntEnum):
    """The reasons for closing a WebSocket, as its closing frame names them."""

    NORMAL = 1000
    PROTOCOL = 1002
    NOT_TEXT = 1007
    TOO_BIG = 1009


class _Ended(Exception):
    def __init__(self, code: int | None, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class WebSocketLayer:
    """The server's side of one WebSocket; ``origins`` are the web origins that may connect."""

    __slots__ = ("_ended", "_input", "_is_open", "_message", "_origins", "_output", "_sends", "_takes", "subprotocol")

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = origins
        self._input = bytearray()
        self._output = bytearray()
        self._message = bytearray()
        self._takes: int | None = None  # the opcode of the message whose fragments are coming in
        self._sends = Opcode.TEXT
        self._is_open = self._ended = False
        self.subprotocol: str | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the WebSocket's handshake (an HTTP request) is complete."""
        return self._is_open

    def decode(self, data: bytes) -> bytes:
        """Return the IRC lines in the messages that the data completes.

        Raises LayerError if the connection has to end.
        """
        if self._ended:
            return b""
        self._input += data
        lines: list[bytes] = []
        try:
            if not self._is_open and not self._upgrade():
                return b""
            while (frame := self._frame()) is not None:
                lines.append(self._take(*frame))
        except HandshakeRefused as declined:
            self._output += declined.answer
            self._end()
            raise LayerError(f"WebSocket: {declined}") from None
        except _Ended as end:
            self._say_goodbye(end.code)
            raise LayerError(end.reason, b"".join(lines)) from None
        return b"".join(lines)

    def encode(self, data: bytes) -> bytes:
        """Return the lines as bytes for the network, each line as a WebSocket message of its own.

        Bytes that the layer itself has to send come first. Before the handshake is complete, lines are lost.
        """
        if data and self._is_open and not self._ended:
            for line in self._clean(data).split(b"\r\n"):
                if line:
                    self._output += _frame(self._sends, line)
        return self.outgoing()

    def outgoing(self) -> bytes:
        """Return the bytes to be sent: HTTP response, messages, pongs, closing frame."""
        data = bytes(self._output)
        self._output.clear()
        return data

    def close(self) -> None:
        """Put the closing frame into the bytes to be sent (``outgoing``)."""
        if self._is_open and not self._ended:
            self._say_goodbye(CloseCode.NORMAL)

    def _clean(self, data: bytes) -> bytes:
        if self._sends is Opcode.BINARY:
            return data
        try:
            data.decode()
        except UnicodeDecodeError:  # a browser would close the connection
            return data.decode(errors="replace").encode()
        return data

    def _upgrade(self) -> bool:
        head, end, _ = bytes(self._input[:LONGEST_REQUEST]).partition(b"\r\n\r\n")
        if not end:
            if len(self._input) >= LONGEST_REQUEST:
                raise HandshakeRefused(431, "The request is too long.")
            return False
        accepted = answer(head, self._origins)
        del self._input[: len(head) + len(end)]
        self._output += accepted.answer
        self.subprotocol = accepted.subprotocol
        self._sends = Opcode.BINARY if accepted.subprotocol == BINARY else Opcode.TEXT
        self._is_open = True
        return True

    def _frame(self) -> tuple[bool, int, bytes] | None:
        """Return the next frame: whether it ends a message, its opcode, and its content (§5.2).

        None if the frame is not complete yet.
        """
        data = self._input
        if len(data) < 2:
            return None
        opcode, length, start = data[0] & _OPCODE, data[1] & _LENGTH, 2
        self._check(data[0], data[1])
        if length > _CONTROL_LIMIT:
            start += 2 if length == 126 else 8
            if len(data) < start:
                return None
            least = 126 if length == 126 else 1 << 16
            length = int.from_bytes(data[2:start])
            if length < least:
                raise _Ended(CloseCode.PROTOCOL, "WebSocket: a length is not in its shortest form")
        if opcode < Opcode.CLOSE and len(self._message) + length > LONGEST_MESSAGE:
            raise _Ended(CloseCode.TOO_BIG, "WebSocket: message too long")
        end = start + 4 + length
        if len(data) < end:
            return None
        content = _masked(bytes(data[start + 4 : end]), bytes(data[start : start + 4]))
        is_last = bool(data[0] & _FIN)
        del data[:end]
        return is_last, opcode, content

    def _check(self, first: int, second: int) -> None:
        opcode = first & _OPCODE
        is_control = opcode >= Opcode.CLOSE
        if first & _RESERVED or opcode not in _OPCODES:
            raise _Ended(CloseCode.PROTOCOL, "WebSocket: unknown kind of frame")
        if not second & _MASKED:
            raise _Ended(CloseCode.PROTOCOL, "WebSocket: frame not masked")
        if is_control and (not first & _FIN or second & _LENGTH > _CONTROL_LIMIT):
            raise _Ended(CloseCode.PROTOCOL, "WebSocket: control frame in parts or too long")
        if not is_control and (opcode == Opcode.CONTINUATION) == (self._takes is None):
            raise _Ended(CloseCode.PROTOCOL, "WebSocket: fragments out of order")

    def _take(self, is_last: bool, opcode: int, content: bytes) -> bytes:
        if opcode == Opcode.CLOSE:
            raise _Ended(_closing_code(content), "Connection closed")
        if opcode == Opcode.PING:
            self._output += _frame(Opcode.PONG, content)
        if opcode >= Opcode.CLOSE:
            return b""
        self._message += content
        self._takes = opcode if self._takes is None else self._takes
        return self._line() if is_last else b""

    def _line(self) -> bytes:
        message, kind = bytes(self._message), self._takes
        self._message.clear()
        self._takes = None
        if kind == Opcode.TEXT and not _is_text(message):
            raise _Ended(CloseCode.NOT_TEXT, "WebSocket: text is not UTF-8")
        line = message.removesuffix(b"\n").removesuffix(b"\r")
        if b"\n" in line or b"\r" in line:
            raise _Ended(CloseCode.PROTOCOL, "WebSocket: a message is one line")
        return line + b"\r\n" if line else b""

    def _say_goodbye(self, code: int | None) -> None:
        self._output += _frame(Opcode.CLOSE, b"" if code is None else struct.pack("!H", code))
        self._end()

    def _end(self) -> None:
        self._ended = True
        self._input.clear()
        self._message.clear()


def _frame(opcode: Opcode, content: bytes) -> bytes:
    length = len(content)
    if length < 126:
        return struct.pack("!BB", _FIN | opcode, length) + content
    if length < 1 << 16:
        return struct.pack("!BBH", _FIN | opcode, 126, length) + content
    return struct.pack("!BBQ", _FIN | opcode, 127, length) + content


def _masked(content: bytes, mask: bytes) -> bytes:
    length = len(content)
    key = (mask * (length // 4 + 1))[:length]
    return (int.from_bytes(content) ^ int.from_bytes(key)).to_bytes(length)


def _closing_code(content: bytes) -> int | None:
    """Return the code for our answer to a closing frame: the same, or that of a protocol error.

    ``content``: what the client's frame contains (RFC 6455 §7.4). None: no code.
    """
    if not content:
        return None
    code = int.from_bytes(content[:2])
    is_known = 1000 <= code <= 1014 and code not in (1004, 1005, 1006)
    if len(content) < 2 or not (is_known or 3000 <= code <= 4999):
        return CloseCode.PROTOCOL
    return code if _is_text(content[2:]) else CloseCode.NOT_TEXT


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
