"""What the index is told, and what it answers."""

from typing import NamedTuple

OPEN = 0.0
"""The room of what was said where anybody could come in."""


class MessageWithLinks(NamedTuple):
    """A message that may hold links.

    ``room`` is OPEN, or the time at which the channel was made if it was closed (+i, +k, +s) when this was said: a
    later channel of the same name is another room.
    """

    channel: str
    room: float
    nick: str
    at: float
    msgid: str
    text: str


class RedactedMessage(NamedTuple):
    """A message that is no more."""

    msgid: str


class Moved(NamedTuple):
    """A channel under another name."""

    channel: str
    new: str


Fact = MessageWithLinks | RedactedMessage | Moved


class Shared(NamedTuple):
    """A link as it is shown: where, by whom and when last, how often, and what was said with it then."""

    channel: str
    nick: str
    at: float
    times: int
    url: str
    context: str
    msgid: str


class LinkPage(NamedTuple):
    """The links asked for, newest first; ``complete`` unless time ran out before the older ones were looked at."""

    links: list[Shared]
    complete: bool


class ReadableChannels(NamedTuple):
    """What somebody may read: not these channels, and of their own (folded) also what was closed, since this time."""

    hidden: frozenset[str]
    since: dict[str, float]
