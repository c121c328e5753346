"""Events: facts that happened, frozen, each with its id. Only events change the network."""

from collections.abc import Mapping
from typing import NamedTuple

from culture.protocol.modes import ModeChange
from culture.server.core.ids import EventId

# ``source`` is the user as others see them, ``nick!user@host``, or the name of a server.


_PASSING = frozenset({"+typing", "+draft/typing"})  # tags that say something about the present moment only


class Arrived(NamedTuple):
    """A user came on the network."""

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
    """A user left the network."""

    id: EventId
    source: str
    reason: str


class Renamed(NamedTuple):
    """A user has another nick."""

    id: EventId
    source: str
    new: str


class Joined(NamedTuple):
    """A user joined a channel, with these member modes."""

    id: EventId
    source: str
    channel: str
    status: str = ""
    account: str | None = None
    realname: str = ""


class Parted(NamedTuple):
    """A user left a channel."""

    id: EventId
    source: str
    channel: str
    reason: str | None = None


class Kicked(NamedTuple):
    """A user was removed from a channel by another."""

    id: EventId
    source: str
    channel: str
    nick: str
    reason: str


class TopicSet(NamedTuple):
    """The topic of a channel was set; an empty text removes it."""

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
    """A user is away with this message, or (None) is back."""

    id: EventId
    source: str
    message: str | None


class Invited(NamedTuple):
    """A user was invited to a channel."""

    id: EventId
    source: str
    nick: str
    channel: str


class AccountSet(NamedTuple):
    """A user logged in to an account of this class, or (None) logged out."""

    id: EventId
    source: str
    account: str | None
    kind: str


class RealnameSet(NamedTuple):
    """A user has another real name."""

    id: EventId
    source: str
    realname: str


class HostSet(NamedTuple):
    """A user has another user name and host."""

    id: EventId
    source: str
    username: str
    host: str


class ChannelRenamed(NamedTuple):
    """A channel was renamed."""

    id: EventId
    source: str
    channel: str
    new: str
    reason: str


class Redacted(NamedTuple):
    """A message was redacted: its sender or an operator took it back."""

    id: EventId
    source: str
    target: str
    msgid: str
    reason: str | None


class MetadataSet(NamedTuple):
    """A metadata key of a user or channel was set, or (None) removed."""

    id: EventId
    source: str
    target: str
    key: str
    value: str | None
    visibility: str = "*"


class Walloped(NamedTuple):
    """An operator sent a message to all users with mode +w."""

    id: EventId
    source: str
    text: str


class Linked(NamedTuple):
    """A server is reachable over ``hops`` links, the first to ``via``.

    An event for this server only, not sent to others.
    """

    id: EventId
    name: str
    description: str
    hops: int
    via: str


class Unlinked(NamedTuple):
    """A server is no longer reachable; an event for this server only, not sent to others."""

    id: EventId
    name: str


class Receipted(NamedTuple):
    """A recipient (``source``) reports to a sender (``target``) how far a message has come."""

    id: EventId
    source: str
    target: str
    msgid: str
    state: str


class Noted(NamedTuple):
    """A fact for the ledger: a statement of a user by kind and key, as JSON."""

    id: EventId
    source: str
    kind: str
    key: str
    value: str
    verified: str = ""
    """Result of the publisher's server for the approval (a Verified); empty if none."""
    why: str = ""
    """The reason for ``verified``."""

    @property
    def target(self) -> str:
        """Return ``*``: a fact has no target, it is sent to every server that may see everything."""
        return "*"


class Line(NamedTuple):
    """A line of a multiline message; ``concat``: it continues the line before it."""

    text: str
    concat: bool


class Said(NamedTuple):
    """A PRIVMSG, NOTICE or TAGMSG to a channel, its members of a rank (``status``), or a nick."""

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
    """The lines of a multiline message as sent; ``text`` has them joined by LF."""
    closed: bool | None = None
    """Whether the channel was closed (``+i``, ``+k``, ``+s``), says its server; None: unknown.

    On the origin server it is None: there the channel itself is known.
    """

    @property
    def is_passing(self) -> bool:
        """Return whether the message is a typing notification, which is of no use later."""
        return self.verb == "TAGMSG" and _PASSING.issuperset(self.tags)


class ToldOpen(NamedTuple):
    """A statement about an earlier message: its channel was open when the message was sent.

    The server of the message made it. ``Host.repeat`` passes it to the hooks of skills that are marked as repeatable.
    """

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
    """Return the nick in a source ``nick!user@host``."""
    return source.partition("!")[0]
