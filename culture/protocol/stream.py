"""Splits a byte stream into lines and checks their length."""

from collections.abc import Iterable
from enum import Enum

from culture.protocol.message import ProtocolError

LINE_LIMIT = 512
"""Bytes of a line without its tags, CR LF included (RFC 2812 §2.3)."""

TAGS_LIMIT = 8191
"""Bytes of all tags of a line, with the ``@`` and the space after them."""

CLIENT_TAGS_LIMIT = 4094
"""Bytes that a client may send between the ``@`` and the space."""

_BODY_LIMIT = LINE_LIMIT - len(b"\r\n")


class Oversize(Enum):
    """Which part of a line is too long: the tags or the rest."""

    BODY = "body"
    TAGS = "tags"


class LineBuffer:
    """Puts lines together from the pieces in which they are read from a connection."""

    __slots__ = ("_held", "_limit")

    def __init__(self, limit: int = TAGS_LIMIT + LINE_LIMIT) -> None:
        self._held = b""
        self._limit = limit

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that ``data`` completes, without their line ends.

        Empty lines are left out. CR LF, a lone LF and a lone CR each end a line. A complete line is returned whatever
        its length (``oversize`` checks it); an unfinished one beyond the limit raises ``ProtocolError``.
        """
        if self._held or data[-1:] != b"\n":
            return self._feed_part(data)
        # bytes.splitlines knows only LF, CR and CR LF, unlike its namesake on str.
        lines = data.splitlines()
        return lines if b"" not in lines else [line for line in lines if line]

    def given_back(self, lines: Iterable[bytes]) -> bytes:
        """Return these lines and the unfinished one as bytes that another buffer can be fed with.

        This buffer is empty afterwards.
        """
        held, self._held = self._held, b""
        return b"".join(line + b"\r\n" for line in lines) + held

    def _feed_part(self, data: bytes) -> list[bytes]:
        data = self._held + data
        lines = data.splitlines()
        self._held = lines.pop() if data and data[-1] not in b"\r\n" else b""
        if len(self._held) > self._limit:
            raise ProtocolError(f"no line end within {self._limit} bytes")
        return [line for line in lines if line]


def oversize(raw: bytes, tags_limit: int = CLIENT_TAGS_LIMIT) -> Oversize | None:
    """Return which part of a line, tags or rest, exceeds its limit.

    None if the line is short enough. ``tags_limit``: the limit of the tags in bytes.
    """
    length = len(raw)
    if length <= _BODY_LIMIT and length <= tags_limit:
        return None
    if raw[:1] == b"@":
        space = raw.find(b" ")
        tags = (space if space >= 0 else length) - 1
        if tags > tags_limit:
            return Oversize.TAGS
        length -= tags + 2
    return Oversize.BODY if length > _BODY_LIMIT else None
