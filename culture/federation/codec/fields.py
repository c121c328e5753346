"""What all lines between servers have: the id and time of an event, numbers, tags; and what is none of it."""

from collections.abc import Callable, Mapping
from typing import Any

from culture.protocol.message import Message, ProtocolError
from culture.protocol.names import valid_short_name
from culture.server.core.ids import MICROSECONDS, EventId
from culture.server.events import Event

_LONGEST_SEQ, _LONGEST_EPOCH = 18, 40

Tags = dict[str, str]
Encoded = tuple[str, tuple[str, ...], str, Tags]
"""Verb, parameters, source and tags of a line, but for those of its id and time."""
Encoders = Mapping[type, Callable[[Any], Encoded]]
Decoders = Mapping[str, Callable[[Message, EventId], Event]]


class Garbled(ProtocolError):
    """A line that is none of ours."""


def stamp_tags(stamp: EventId) -> Tags:
    """An event's id and time as tags."""
    origin, epoch, seq, at = stamp
    return {"id": f"{origin}.{epoch}.{seq}", "at": str(round(at * MICROSECONDS))}


def read_stamp(tags: Mapping[str, str]) -> EventId:
    """The same again."""
    head, _, number = tags["id"].rpartition(".")
    origin, _, epoch = head.rpartition(".")
    at = tags["at"]
    if not (valid_short_name(origin) and is_epoch(epoch) and _is_number(number) and _is_number(at)):
        raise ValueError("not an id")
    return EventId(origin, epoch, int(number), int(at) / MICROSECONDS)


def is_epoch(text: str) -> bool:
    """Can this be the epoch of a server's ids? Rosters have none for their users."""
    return len(text) <= _LONGEST_EPOCH and (text.isalnum() or text == "-")


def number(text: str) -> int:
    """What a peer says is a number: one that fits wherever numbers are kept; raises Garbled."""
    if not _is_number(text):
        raise Garbled(f"{text[:_LONGEST_SEQ]} is no number")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_SEQ


def optional(**tags: str | None) -> Tags:
    """These tags, but for those that are empty."""
    return {key: value for key, value in tags.items() if value}
