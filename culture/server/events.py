"""The facts: what happened, frozen, each named by its stamp. Only these change the network."""

from collections.abc import Mapping
from typing import NamedTuple

from culture.protocol.modes import ModeChange
from culture.server.core.ids import EventId

# ``source`` is who did it as others see them: ``nick!user@host``, or the name of a server.


_PASSING = frozenset({"+typing", "+draft/typing"})


class Arrived(NamedTuple):
    """Somebody is on the network."""

    id: EventId
    nick: str
    username: str
    host: str
    realname: str
    server: str
    account: str | None = None
    kind: str = "unknown"
    modes: str = ""


class Left(NamedTuple):
    """Somebody is gone from the network."""

    id: EventId
    source: str
    reason: str


class Renamed(NamedTuple):
    """Somebody has another nick."""

    id: EventId
    source: str
    new: str


class Joined(NamedTuple):
    """Somebody came into a channel, with these member modes."""

    id: EventId
    source: str
    channel: str
    status: str = ""
    account: str | None = None
    realname: str = ""


class Parted(NamedTuple):
    """Somebody left a channel."""

    id: EventId
    source: str
    channel: str
    reason: str | None = None


class Kicked(NamedTuple):
    """Somebody was removed from a channel."""

    id: EventId
    source: str
    channel: str
    nick: str
    reason: str


class TopicSet(NamedTuple):
    """A channel has another topic; an empty one is none."""

    id: EventId
    source: str
    channel: str
    text: str


class ModeSet(NamedTuple):
    """Modes of a channel or of its members changed."""

    id: EventId
    source: str
    channel: str
    changes: tuple[ModeChange, ...]


class UserModeSet(NamedTuple):
    """Modes of a user changed."""

    id: EventId
    source: str
    changes: tuple[ModeChange, ...]


class AwaySet(NamedTuple):
    """Somebody is away, or (None) is back."""

    id: EventId
    source: str
    message: str | None


class Invited(NamedTuple):
    """Somebody may come into a channel, and is told so."""

    id: EventId
    source: str
    nick: str
    channel: str


class AccountSet(NamedTuple):
    """Somebody logged in to an account of this class, or (None) out of it."""

    id: EventId
    source: str
    account: str | None
    kind: str


class RealnameSet(NamedTuple):
    """Somebody has another real name."""

    id: EventId
    source: str
    realname: str


class HostSet(NamedTuple):
    """Somebody is shown with another user name and host."""

    id: EventId
    source: str
    username: str
    host: str


class ChannelRenamed(NamedTuple):
    """A channel has another name."""

    id: EventId
    source: str
    channel: str
    new: str
    reason: str


class Redacted(NamedTuple):
    """A message was taken back."""

    id: EventId
    source: str
    target: str
    msgid: str
    reason: str | None


class MetadataSet(NamedTuple):
    """A user or a channel has this under the key, or (None) nothing any more."""

    id: EventId
    source: str
    target: str
    key: str
    value: str | None
    visibility: str = "*"


class Walloped(NamedTuple):
    """An operator spoke to everybody who listens (+w)."""

    id: EventId
    source: str
    text: str


class Linked(NamedTuple):
    """A server can be reached, over so many links, the first of them to ``via``. Only for this server to know."""

    id: EventId
    name: str
    description: str
    hops: int
    via: str


class Unlinked(NamedTuple):
    """A server cannot be reached any more. Only for this server to know."""

    id: EventId
    name: str


class Receipted(NamedTuple):
    """A message has come so far with whom it was for (``source``); ``target`` is the nick of who said it."""

    id: EventId
    source: str
    target: str
    msgid: str
    state: str


class Noted(NamedTuple):
    """A fact for the ledger: what somebody says of themselves, by kind and key, as JSON."""

    id: EventId
    source: str
    kind: str
    key: str
    value: str
    verified: str = ""
    """What the server of the publisher found of the approval in the fact: a Verified; empty where it did not look."""
    why: str = ""
    """The reason of that."""

    @property
    def target(self) -> str:
        """It is for every server that may know of everything."""
        return "*"


class Line(NamedTuple):
    """A line of a longer message; ``concat``: it goes on where the one before it ended."""

    text: str
    concat: bool


class Said(NamedTuple):
    """A message to a channel, to its members of a rank (``status``), or to a nick; verb PRIVMSG, NOTICE or TAGMSG."""

    id: EventId
    source: str
    verb: str
    target: str
    text: str
    account: str | None
    kind: str
    tags: Mapping[str, str]
    mentions: tuple[str, ...] = ()
    status: str = ""
    lines: tuple[Line, ...] = ()
    """How the sender divided a text of several lines (which is joined by LF in ``text``); none for ordinary ones."""
    closed: bool | None = None
    """Was the channel closed (``+i``, ``+k``, ``+s``) where it was said, says that server; None where it does not say.

    On the server where it was said it is None: the channel is there to be looked at.
    """

    @property
    def is_passing(self) -> bool:
        """Does it say something about the moment alone: that somebody is typing?"""
        return self.verb == "TAGMSG" and _PASSING.issuperset(self.tags)


class ToldOpen(NamedTuple):
    """A message that is known was said in an open channel, says the server of its sender; told by ``Host.repeat``."""

    id: EventId
    channel: str


Event = (
    Arrived
    | Left
    | Renamed
    | Joined
    | Parted
    | Kicked
    | TopicSet
    | ModeSet
    | UserModeSet
    | AwaySet
    | Invited
    | AccountSet
    | RealnameSet
    | HostSet
    | ChannelRenamed
    | Redacted
    | MetadataSet
    | Walloped
    | Linked
    | Unlinked
    | Receipted
    | Noted
    | Said
)


def nick_of(source: str) -> str:
    """The nick in a source."""
    return source.partition("!")[0]
