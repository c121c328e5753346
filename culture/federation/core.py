"""What a link asks of the server it belongs to: the parts that take each kind of line."""

from typing import TYPE_CHECKING, Protocol

from culture.config.links import LinkConfig as Settings
from culture.federation.plain import Plain
from culture.federation.roster import Roster
from culture.protocol.message import Message

if TYPE_CHECKING:
    from culture.federation.link import Link


class Refusal(Exception):
    """The peer is not let in; the text is for it to read."""


class Admission(Protocol):
    """Lets peers in."""

    def greeting(self, link: "Link") -> tuple[Message, Message]:
        """Our PASS and SERVER."""

    def admit(self, link: "Link", name: str, secret: str) -> Settings:
        """Who the peer is; raises Refusal."""

    def admitted(self, link: "Link") -> None:
        """Both sides have shown who they are."""

    def agreed(self, link: "Link", version: int, words: tuple[str, ...]) -> None:
        """The peer has said what it speaks; raises Refusal."""


class Presence(Protocol):
    """Knows who is on the mesh."""

    def link_state(self, link: "Link", line: Message) -> None:
        """Who is linked to whom."""

    def roster(self, link: "Link", roster: Roster) -> None:
        """The users of a server."""

    def channel(self, link: "Link", line: Message) -> None:
        """What a channel is set to."""

    def wanted(self, link: "Link", server: str) -> None:
        """The peer wants to know the users of a server."""


class Backfill(Protocol):
    """Keeps count of what was told."""

    def begun(self, link: "Link", log: str) -> None:
        """The peer is linked; this is the name of its log."""

    def resumed(self, link: "Link", log: str, position: int) -> None:
        """The peer asks for what it missed: it has read this log up to here."""

    def caught_up(self, link: "Link", position: int) -> None:
        """The peer has told its log up to here."""

    def acknowledged(self, link: "Link", position: int, told: int) -> None:
        """The peer has everything up to here on disk, and has told its own log up to there."""

    def gap(self, link: "Link", lost: int) -> None:
        """So many messages are no longer kept by the peer."""


class Sharing(Protocol):
    """Knows which channels cross which links."""

    def joined(self, link: "Link", line: Message) -> None:
        """Members of a channel that crosses again."""

    def parted(self, link: "Link", line: Message) -> None:
        """Members of a channel that does not cross any more."""

    def wanted(self, link: "Link", channel: str) -> None:
        """The peer wants to know who is in a channel."""


class Relay(Protocol):
    """Takes what happened elsewhere."""

    def event(self, link: "Link", line: Message) -> None:
        """Something happened."""


class Courier(Protocol):
    """Carries private messages."""

    def custody(self, link: "Link", id: str) -> None:
        """The peer has a private message on disk."""


class Messages(Protocol):
    """Takes messages to channels."""

    def heard_plain(self, link: "Link", said: Plain) -> None:
        """One in its commonest form."""


class Core(Protocol):
    """What a link asks of the server it belongs to."""

    @property
    def admission(self) -> Admission:
        """Lets peers in."""

    @property
    def presence(self) -> Presence:
        """Knows who is on the mesh."""

    @property
    def backfill(self) -> Backfill:
        """Keeps count."""

    @property
    def sharing(self) -> Sharing:
        """Knows which channels cross."""

    @property
    def relay(self) -> Relay:
        """Takes events."""

    @property
    def messages(self) -> Messages:
        """Takes messages to channels."""

    @property
    def courier(self) -> Courier:
        """Carries private messages."""
