"""What an agent's tools and its daemon say to each other: JSON Lines, as plain values and functions."""

import json
from collections.abc import Mapping
from typing import NamedTuple

LONGEST_LINE = 1 << 20
"""A request's line, its newline included; an answer may be longer."""
LONGEST_ID = 200

WORK_LIMIT = 30.0
"""How long the daemon works on a request; a question takes its own time on top."""
MARGIN = 15.0
"""How much longer a client waits than the daemon works, so that it always hears how it ended."""
STOPPING = "the daemon is stopping"
"""The error of a request that waited when the daemon stopped; the next run may be asked again."""


class BadLine(Exception):
    """A line that is no request; ``id`` is the request's, where that much could be read."""

    def __init__(self, text: str, id: str | None = None) -> None:
        super().__init__(text)
        self.id = id


class Request(NamedTuple):
    """Something a client wants; ``fields`` are as they came, not yet checked."""

    type: str
    id: str
    fields: Mapping[str, object]


class Response(NamedTuple):
    """How a request ended; ``id`` is None for a line that could not be read."""

    id: str | None
    ok: bool
    data: object = None
    error: str | None = None


class Whisper(NamedTuple):
    """A word of the supervisor, for the agent alone."""

    whisper_type: str
    message: str


class Lines:
    """Cuts bytes into lines. One that is too long is dropped as it comes; None stands for it, once."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._begun = bytearray()
        self.dropped = 0
        """Bytes of the present line that were thrown away."""

    @property
    def is_within(self) -> bool:
        """Whether a line has begun and not ended."""
        return bool(self._begun or self.dropped)

    def feed(self, chunk: bytes) -> list[bytes | None]:
        """The lines that end in this chunk, without their newline."""
        found: list[bytes | None] = []
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            found += self._add(part)
            if not self.dropped:
                found.append(bytes(self._begun))
            self._begun.clear()
            self.dropped = 0
        return found + self._add(rest)

    def _add(self, part: bytes) -> list[None]:
        if self.dropped:
            self.dropped += len(part)
            return []
        self._begun += part
        if len(self._begun) < self._longest:
            return []
        self.dropped = len(self._begun)
        self._begun.clear()
        return [None]


def encode(message: Request | Response | Whisper) -> bytes:
    """The line of a message, newline included."""
    match message:
        case Request(type, id, fields):
            return _line({"type": type, "id": id, **fields})
        case Response(id, True, data, _):
            return _line({"type": "response", "id": id, "ok": True, "data": data})
        case Response(id, _, _, error):
            return _line({"type": "response", "id": id, "ok": False, "error": error})
        case Whisper(kind, text):
            return _line({"type": "whisper", "whisper_type": kind, "message": text})


def decode_request(line: bytes) -> Request:
    """The request of a line; BadLine says what is wrong with any other."""
    fields = _object(line)
    id = fields.pop("id", None)
    if id is None:
        raise BadLine("the request has no id")
    if not isinstance(id, str) or not 0 < len(id) <= LONGEST_ID:
        raise BadLine(f"id must be a string of 1 to {LONGEST_ID} characters")
    type = fields.pop("type", None)
    if type is None:
        raise BadLine("the request has no type", id)
    if not isinstance(type, str):
        raise BadLine("type must be a string", id)
    return Request(type, id, fields)


def decode_answer(line: bytes) -> Response | Whisper:
    """What a daemon said."""
    fields = _object(line)
    match fields:
        case {"type": "whisper", "whisper_type": str(kind), "message": str(text)}:
            return Whisper(kind, text)
        case {"type": "response", "id": str() | None as id, "ok": True}:
            return Response(id, True, fields.get("data"))
        case {"type": "response", "id": str() | None as id, "ok": False, "error": str(error)}:
            return Response(id, False, error=error)
    raise BadLine("neither a response nor a whisper")


def _object(line: bytes) -> dict[str, object]:
    try:
        decoded = json.loads(line)
    except RecursionError:
        raise BadLine("the JSON is nested too deeply") from None
    except UnicodeDecodeError:
        raise BadLine("the line is not UTF-8") from None
    except ValueError as error:
        raise BadLine(f"the line is not JSON: {error}") from None
    if not isinstance(decoded, dict):
        raise BadLine("the line is not a JSON object")
    return decoded


def _line(fields: Mapping[str, object]) -> bytes:
    # A lone surrogate, which JSON can spell and UTF-8 cannot, becomes a question mark.
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
