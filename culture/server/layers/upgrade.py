"""The HTTP request that a WebSocket begins with (RFC 6455 §4), and the answer to it."""

import base64
import binascii
import hashlib
import re
from collections.abc import Collection
from typing import NamedTuple

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


class Declined(Exception):
    """The request does not become a WebSocket; ``answer`` is the HTTP response that says so."""

    def __init__(self, status: int, why: str, *headers: str) -> None:
        super().__init__(why)
        body = f"{why}\r\n".encode()
        fields = ("Connection: close", "Content-Type: text/plain", f"Content-Length: {len(body)}", *headers)
        self.answer = _response(f"{status} {_REASONS[status]}", *fields) + body


class Accepted(NamedTuple):
    """The answer to a request that is fine, and the subprotocol it chose (None: the client asked for none of ours)."""

    answer: bytes
    subprotocol: str | None


def answer(head: bytes, origins: Collection[str]) -> Accepted:
    """Judge a request, given without its empty line; raises Declined."""
    first, *lines = head.decode("latin-1").split("\r\n")
    request = _REQUEST.fullmatch(first)
    if request is None or request[3] != "1.1":
        raise Declined(400, "This is a WebSocket for IRC and speaks HTTP/1.1.")
    if request[1] != "GET":
        raise Declined(405, "Only GET is of use here.", "Allow: GET")
    headers = _headers(lines)
    if "websocket" not in _words(headers, "upgrade") or "upgrade" not in _words(headers, "connection"):
        raise Declined(426, "This is a WebSocket for IRC, not a web page.", "Upgrade: websocket", "Connection: Upgrade")
    if "content-length" in headers or "transfer-encoding" in headers:
        raise Declined(400, "The request must have no body.")
    _one(headers, "host")
    _check_origin(headers, origins)
    if _one(headers, "sec-websocket-version") != "13":
        raise Declined(426, "Version 13 is the one.", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
    return _accept(_one(headers, "sec-websocket-key"), _words(headers, "sec-websocket-protocol"))


def _accept(key: str, offered: list[str]) -> Accepted:
    try:
        is_key = len(base64.b64decode(key, validate=True)) == 16
    except (binascii.Error, ValueError):
        is_key = False
    if not is_key:
        raise Declined(400, "Sec-WebSocket-Key is wrong.")
    proof = base64.b64encode(hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest()).decode()
    chosen = next((name for name in offered if name in (TEXT, BINARY)), None)
    named = (f"Sec-WebSocket-Protocol: {chosen}",) if chosen else ()
    upgrade = ("Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Accept: {proof}", *named)
    return Accepted(_response("101 Switching Protocols", *upgrade), chosen)


def _check_origin(headers: dict[str, list[str]], origins: Collection[str]) -> None:
    # Any web page may open a socket to any address its reader can reach, this machine included.
    said = headers.get("origin", [])
    allowed = (NO_ORIGIN in origins) if not said else (len(said) == 1 and said[0].lower() in origins)
    if not allowed or said == [NO_ORIGIN]:
        raise Declined(403, "This Origin may not connect: see listen[].websocket.origins of the server.")


def _headers(lines: list[str]) -> dict[str, list[str]]:
    if len(lines) > MOST_HEADERS:
        raise Declined(431, "Too many header fields.")
    headers: dict[str, list[str]] = {}
    for line in lines:
        field = _HEADER.fullmatch(line)
        if field is None:
            raise Declined(400, "A header field is malformed.")
        headers.setdefault(field[1].lower(), []).append(field[2])
    return headers


def _one(headers: dict[str, list[str]], name: str) -> str:
    values = headers.get(name, [])
    if len(values) != 1:
        raise Declined(400, f"One field {name} is needed.")
    return values[0]


def _words(headers: dict[str, list[str]], name: str) -> list[str]:
    return [word.strip().lower() for value in headers.get(name, []) for word in value.split(",")]


def _response(status: str, *headers: str) -> bytes:
    return "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *headers, "")).encode()
