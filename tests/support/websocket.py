"""A WebSocket client without a socket, as small as RFC 6455 allows, and as wrong as a test wants it."""

import os
import struct

KEY = "dGhlIHNhbXBsZSBub25jZQ=="  # with its answer in RFC 6455 §1.3
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
ORIGIN = "https://chat.example.org"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10

HEADERS = {
    "Host": "spark:8097",
    "Upgrade": "websocket",
    "Connection": "keep-alive, Upgrade",
    "Origin": ORIGIN,
    "Sec-WebSocket-Key": KEY,
    "Sec-WebSocket-Version": "13",
}


def request(first: str = "GET / HTTP/1.1", **changes: str | None) -> bytes:
    """An opening request; ``sec_websocket_key=None`` leaves a field out, any other value replaces or adds it."""
    headers: dict[str, str | None] = {name.lower(): value for name, value in HEADERS.items()}
    headers |= {name.replace("_", "-"): value for name, value in changes.items()}
    lines = [first, *(f"{name}: {value}" for name, value in headers.items() if value is not None)]
    return "\r\n".join([*lines, "", ""]).encode()


def frame(
    opcode: int, content: bytes = b"", *, last: bool = True, masked: bool = True, reserved: int = 0, wide: int = 0
) -> bytes:
    """A frame; ``wide`` is how many bytes the length takes at least."""
    length = len(content)
    first = (0x80 if last else 0) | reserved | opcode
    mask = os.urandom(4) if masked else b""
    if length < 126 and not wide:
        head = struct.pack("!BB", first, length | (0x80 if masked else 0))
    elif length < 65536 and wide <= 2:
        head = struct.pack("!BBH", first, 126 | (0x80 if masked else 0), length)
    else:
        head = struct.pack("!BBQ", first, 127 | (0x80 if masked else 0), length)
    hidden = bytes(byte ^ mask[place % 4] for place, byte in enumerate(content)) if masked else content
    return head + mask + hidden


def frames(data: bytes) -> list[tuple[int, bytes]]:
    """Kind and content of the frames that a server sent; it must not mask them, nor split them."""
    found = []
    while data:
        first, length, start = data[0], data[1], 2
        assert first & 0x70 == 0 and first & 0x80 and length < 0x80
        if length >= 126:
            start = 4 if length == 126 else 10
            length = int.from_bytes(data[2:start])
        found.append((first & 0x0F, data[start : start + length]))
        assert len(data) >= start + length
        data = data[start + length :]
    return found


def code(content: bytes) -> int:
    """Why a closing frame says it ends."""
    return int.from_bytes(content[:2])
