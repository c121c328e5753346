"""Types of the index: what is written to it, and what it returns."""

from typing import NamedTuple

OPEN = 0.0
"""Room of a message in an open channel."""


class MessageWithLinks(NamedTuple):
    """A message that may contain links.

    ``room`` is OPEN, or the creation time of the channel if it was closed (+i, +k, +s) when the message was sent: a
    later channel of the same name is another one.
    """

    channel: str
    room: float
    nick: str
    at: float
    msgid: str
    text: str


class RedactedMessage(NamedTuple):
    """A redacted message, whose links are to be removed from the index."""

    msgid: str


class Moved(NamedTuple):
    """A renamed channel, whose links are to get the new name."""

    channel: str
    new: str


Fact = MessageWithLinks | RedactedMessage | Moved


class Shared(NamedTuple):
    """A link with its last mention, the number of mentions, and the text around the link."""

    channel: str
    nick: str
    at: float
    times: int
    url: str
    context: str
    msgid: str


class LinkPage(NamedTuple):
    """Links that match a query, newest first.

    ``complete`` is False if the time limit stopped the search.
    """

    links: list[Shared]
    complete: bool


class ReadableChannels(NamedTuple):
    """Which links a user may read: those of all channels but the ``hidden`` ones.

    ``since``: the creation time of each channel of the user; links shared there while it was closed are readable,
    too.
    """

    hidden: frozenset[str]
    since: dict[str, float]
