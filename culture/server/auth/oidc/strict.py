"""JSON and base64 from outside, read without leniency."""

import base64
import json
from typing import NoReturn

from culture.server.shapes import Json


def json_object(data: bytes) -> Json:
    """A JSON object without NaN or a key said twice; raises ValueError."""
    try:
        found = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def unarmoured(text: str) -> bytes:
    """What base64url without padding stands for (RFC 7515 §2); raises ValueError."""
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    # Decoding passes over what it does not know; there is one way to write a thing.
    if base64.urlsafe_b64encode(data).rstrip(b"=") != text.encode():
        raise ValueError("not base64url")
    return data


def _once(pairs: list[tuple[str, object]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
