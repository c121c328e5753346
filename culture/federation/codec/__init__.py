"""Events as lines between servers, both directions side by side: a module for each kind of event.

A line is an IRC message with RFC 2813's verbs where they fit. Its tags tell the event's id (``id``) and time (``at``,
microseconds); everything that the event has and the verb has no place for is in further tags.
"""

from collections.abc import Mapping

from culture.federation.codec import channels, messages, modes, users
from culture.federation.codec.fields import Decoders, Encoders, Garbled, read_stamp, stamp_tags
from culture.protocol.message import Message
from culture.server.events import Event

_ENCODERS: Encoders = {**users.ENCODERS, **modes.ENCODERS, **channels.ENCODERS, **messages.ENCODERS}
_DECODERS: Decoders = {**users.DECODERS, **modes.DECODERS, **channels.DECODERS, **messages.DECODERS}
VERBS = frozenset(_DECODERS)
"""The verbs that are events."""
EVENTS = tuple(_ENCODERS)
"""The kinds of event that may cross a link."""
LATER: Mapping[str, str] = {"LEAVE": "leave", "LEDGER": "ledger", "RECEIPT": "receipt"}
"""Verbs that are newer than version 1 of the protocol, and what a peer that knows each says that it can."""


def encode(event: Event) -> Message:
    """The line of an event."""
    verb, params, source, tags = _ENCODERS[type(event)](event)
    return Message(verb, params, source, {**stamp_tags(event.id), **tags})


def decode(line: Message) -> Event:
    """The event of a line; raises Garbled."""
    decoder = _DECODERS.get(line.verb)
    if decoder is None:
        raise Garbled(f"unknown verb {line.verb}")
    try:
        return decoder(line, read_stamp(line.tags))
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise Garbled(f"{line.verb}: {error}") from error
