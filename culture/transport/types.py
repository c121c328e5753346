"""Types of the IRC client: identities, messages, marks, callbacks, errors, timeouts."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import ParamSpec, Protocol

from culture.protocol.message import NO_TAGS
from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import Receipt, UserClass

log = logging.getLogger(__name__)
_P = ParamSpec("_P")

MARK_SIZE = 8
"""Number of message ids in a mark."""


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port of a server, and how its identity is checked."""

    host: str
    port: int = 6667
    tls: bool = False
    fingerprint: str | None = None
    """SHA-256 of the certificate; without it the system's certificate authorities decide."""
    user: str | None = None
    """User who runs a server on this machine, if neither root nor ourselves."""


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """Nick, account and credentials with which a client registers on a server."""

    nick: str
    account: str | None = None
    secret: str | None = field(default=None, repr=False)
    """Password or token of the account; without an account the server's password."""
    realname: str = ""
    bot: bool = True
    certificate: Path | None = None
    """Client certificate for TLS, with its key in the same file or in ``key``."""
    key: Path | None = None
    on_behalf: str | None = None
    """Account of the person to log in for, if our account may act for people."""


def _empty_mapping() -> Mapping[str, str]:
    return NO_TAGS


@dataclass(frozen=True, slots=True)
class Message:
    """A message in a channel or a private one, as the client received it."""

    channel: str
    """The channel, or the other user's nick in private."""
    sender: str
    text: str
    timestamp: datetime
    msgid: str = ""
    """Id from the server; one that begins with ``local.`` was made by this client, as the server has none."""
    account: str | None = None
    kind: UserClass = UserClass.UNKNOWN
    private: bool = False
    notice: bool = False
    mentions: tuple[str, ...] = ()
    calls_all: bool = False
    tags: Mapping[str, str] = field(default_factory=_empty_mapping)
    missed: bool = False
    """Whether it came from the history."""
    own: bool = False
    """Whether we sent it, here or on another device."""

    @property
    def nick(self) -> str:
        """Nick of the sender, the same as ``sender``."""
        return self.sender


@dataclass(frozen=True, slots=True)
class ChannelMember:
    """A user with the rank held in a channel, as far as the server has told us."""

    nick: str
    modes: str = ""
    """Mode letters of the rank in the channel, the highest first: ``o``, ``v``."""
    account: str | None = None
    kind: UserClass = UserClass.UNKNOWN
    away: bool = False
    user: str = ""
    host: str = ""
    realname: str = ""
    metadata: Mapping[str, str] = field(default_factory=_empty_mapping)

    @property
    def is_operator(self) -> bool:
        """Whether the member has the rank of an operator in the channel, or a higher one."""
        return "o" in self.modes or "q" in self.modes or "a" in self.modes


@dataclass(frozen=True, slots=True)
class ReceiveMark:
    """How far messages were received: ids of the last ones, newest first, and the newest's time."""

    msgids: tuple[str, ...]
    time: datetime


class ReceiveCursor(Protocol):
    """Remembers across restarts which messages were received; whoever stores them implements it."""

    def load(self) -> ReceiveMark | None:
        """Return the mark up to which all messages were received; None at the very first start."""

    def knows(self, msgid: str) -> bool:
        """Return whether the message with this id was received and stored."""


class ConnectionState(StrEnum):
    """State of the connection to the server, as reported to ``on_state``."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    """Registered, in the channels, catch-up done."""
    LOST = "lost"
    """Disconnected; the next attempt comes after a pause."""
    HOPELESS = "hopeless"
    """Disconnected for good: trying again would not help."""
    STOPPED = "stopped"


OnMessage = Callable[[Message], None]
OnState = Callable[[ConnectionState, str], None]
OnLine = Callable[[Line], None]
"""Called with each live line of the server, after the view is updated."""
OnArrival = Callable[[str, str], None]
"""Called with a channel and the nick that joined it."""
OnInvite = Callable[[str, "ChannelMember | None"], None]
"""Called with a channel and the user who invites us; None for the server itself."""
OnReceipt = Callable[[str, Receipt], None]
"""Called with the id of a message of ours and how far it has come."""
OnProgress = Callable[[str, Receipt, str], None]
"""Called with the id of a message of ours, how far it has come, and with which recipient."""
OnOutside = Callable[[str, str], None]
"""Called with a channel that we should be in and are not, and the reason: kicked, banned, invite only."""


def call_safely(callback: Callable[_P, None] | None, *args: _P.args, **kwargs: _P.kwargs) -> None:
    """Call a callback if there is one; an exception in it is logged and does not propagate."""
    try:
        if callback is not None:
            callback(*args, **kwargs)
    except Exception:
        log.exception("a callback failed")


class NotSent(Exception):
    """A message or command failed; the text is the server's reason, or that of this client."""

    def __init__(self, reason: str, code: str = "", uncertain: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        """Numeric or FAIL code; empty if the reason is not the server's."""
        self.uncertain = uncertain
        """Whether the connection was lost before the answer: the message may have been sent."""


class NoHistory(NotSent):
    """The server keeps no message history that can be requested."""


class Hopeless(Exception):
    """Connecting again would fail too, for example because of a wrong password or certificate."""


class WrongServer(Hopeless):
    """Another server than expected answers at the address; the expected one may be back later."""


class ServerUnreachable(Hopeless):
    """The connection failed, and only one attempt was to be made."""


class Transport(Protocol):
    """The five operations on a chat system that do not depend on its protocol."""

    async def send(self, channel: str, message: str, sender: str) -> None:
        """Send a message to a channel as ``sender``."""

    async def read(self, channel: str, since: datetime | None = None) -> list[Message]:
        """Return the messages of a channel since a time (or the latest), the oldest first."""

    async def create_channel(self, name: str) -> None:
        """Create a channel and join it."""

    async def list_channels(self) -> Sequence[str]:
        """Return the names of the channels."""

    async def get_members(self, channel: str) -> Sequence[str]:
        """Return the nicks of a channel's members."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Timeouts and pauses of the IRC client, in seconds."""

    silence: float = 45.0
    """A connection without any data for this long is dead; PING is sent in time."""
    registration: float = 30.0
    """Limit for dialing, and again for registering."""
    first_word: float = 30.0
    """Limit for the first line on a new connection."""
    answer: float = 30.0
    """Limit for the answer to a command."""
    first_pause: float = 1.0
    longest_pause: float = 60.0
    regain: float = 30.0
    """Pause between two attempts to regain the nick, and to repeat a failed catch-up."""
