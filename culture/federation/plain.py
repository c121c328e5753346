"""The commonest line by far, a plain message to a channel, made and read by hand: it decides what a link can carry."""

import re
from typing import NamedTuple

from culture.federation.codec import encode
from culture.federation.codec.messages import CLOSED
from culture.protocol.message import NO_TAGS
from culture.server.core.ids import MICROSECONDS, EventId
from culture.server.events import Said

_make = tuple.__new__  # what a NamedTuple's own constructor does, without the call around it
_PLAIN = re.compile(
    r"@n=([0-9]{1,18});((?:open=([01]);)?seal=[0-9a-f]{32};id=([a-z][a-z0-9]{0,11})\.([0-9a-f]{1,40})\.([0-9]{1,18});at=([0-9]{1,18});kind=([a-z]+)"
    r" :([^ ]+) (PRIVMSG|NOTICE) (#[^ ]*) :(.*))"
)


class Plain(NamedTuple):
    """A message in its commonest form: its position in the sender's log, the line without that, and the event."""

    position: int
    data: str
    event: Said


def plain(event: Said) -> str:
    """The text of a message's line; ``id``, ``at`` and ``kind`` come last of its tags when they are all it has."""
    _, source, verb, target, text, account, kind, tags, mentions, status, lines, _ = event
    if tags or mentions or lines or account or verb == "TAGMSG" or target[0] != "#":
        return str(encode(event))
    origin, epoch, seq, at = event.id
    micro = round(at * MICROSECONDS)
    return f"@id={origin}.{epoch}.{seq};at={micro};kind={kind} :{source} {verb} {status}{target} :{text}"


def read_plain(text: str) -> Plain | None:
    """The message of such a line as it goes over a link; None for every other."""
    found = _PLAIN.fullmatch(text)
    if found is None:
        return None
    position, data, opened, origin, epoch, seq, at, kind, source, verb, target, said = found.groups()
    stamp = _make(EventId, (origin, epoch, int(seq), int(at) / MICROSECONDS))
    event = _make(Said, (stamp, source, verb, target, said, None, kind, NO_TAGS, (), "", (), CLOSED[opened]))
    return _make(Plain, (int(position), f"@{data}", event))
