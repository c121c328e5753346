"""What being on IRC as somebody consists of: addresses, identities, messages, and the marks of what was received."""

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
from culture.transport import backoff

log = logging.getLogger(__name__)
_P = ParamSpec("_P")

MARKED = 8
"""How many ids a mark holds."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is, and by what its certificate is known."""

    host: str
    port: int = 6667
    tls: bool = False
    fingerprint: str | None = None
    """SHA-256 of the certificate; without it the system's trust decides."""
    user: str | None = None
    """The user who runs a server on this machine, where it is neither root nor ourselves."""


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """Who somebody is on a server, and how they prove it."""

    nick: str
    account: str | None = None
    secret: str | None = field(default=None, repr=False)
    """Of the account; without an account the server's password."""
    realname: str = ""
    bot: bool = True
    certificate: Path | None = None
    """A certificate with its key in one file or in ``key``, shown to servers over TLS."""
    key: Path | None = None
    on_behalf: str | None = None
    """The account of the person for whom we log in, where ours may act for people."""


def _nothing() -> Mapping[str, str]:
    return NO_TAGS


@dataclass(frozen=True, slots=True)
class Message:
    """Something that was said."""

    channel: str
    """The channel, or in private the other's nick."""
    sender: str
    text: str
    timestamp: datetime
    msgid: str = ""
    """The server's id; one that begins with ``local.`` was made here, as the server has none."""
    account: str | None = None
    kind: UserClass = UserClass.UNKNOWN
    private: bool = False
    notice: bool = False
    mentions: tuple[str, ...] = ()
    calls_all: bool = False
    tags: Mapping[str, str] = field(default_factory=_nothing)
    missed: bool = False
    """It came from the history."""
    own: bool = False
    """Said by ourselves, here or on another device."""

    @property
    def nick(self) -> str:
        """Who said it."""
        return self.sender


@dataclass(frozen=True, slots=True)
class ChannelMember:
    """Somebody in a channel, as far as it is known."""

    nick: str
    modes: str = ""
    """The mode letters of the rank, the highest first: ``o``, ``v``."""
    account: str | None = None
    kind: UserClass = UserClass.UNKNOWN
    away: bool = False
    user: str = ""
    host: str = ""
    realname: str = ""
    metadata: Mapping[str, str] = field(default_factory=_nothing)

    @property
    def is_operator(self) -> bool:
        """Whether they run the channel."""
        return "o" in self.modes or "q" in self.modes or "a" in self.modes


@dataclass(frozen=True, slots=True)
class ReceiveMark:
    """How far somebody has received: the last ids, the newest first, and the time of the newest."""

    msgids: tuple[str, ...]
    time: datetime


class ReceiveCursor(Protocol):
    """Remembers across restarts what was received; kept by whoever keeps the messages."""

    def load(self) -> ReceiveMark | None:
        """Up to where everything was received; None at the very first start."""

    def knows(self, msgid: str) -> bool:
        """Whether this message was received."""


class ConnectionState(StrEnum):
    """How the connection is."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    """Registered, in the channels, and nothing missed is outstanding."""
    LOST = "lost"
    """The connection is gone; it is tried again after a while."""
    HOPELESS = "hopeless"
    """It is not tried again."""
    STOPPED = "stopped"


OnMessage = Callable[[Message], None]
OnState = Callable[[ConnectionState, str], None]
OnLine = Callable[[Line], None]
"""A line of the server, once the view knows what it says; nothing from the history."""
OnArrival = Callable[[str, str], None]
"""The channel, and who has come into it."""
OnInvite = Callable[[str, "ChannelMember | None"], None]
"""The channel, and who invites; None for the server itself."""
OnReceipt = Callable[[str, Receipt], None]
"""The id of a message of ours, and how far it has come."""
OnProgress = Callable[[str, Receipt, str], None]
"""The id of a message of ours, how far it has come, and with whom."""
OnOutside = Callable[[str, str], None]
"""A channel that we wanted to be in and are not, and why: kicked, banned, by invitation only."""


def guarded(callback: Callable[_P, None] | None, *args: _P.args, **kwargs: _P.kwargs) -> None:
    """Call somebody's callback, if there is one; what goes wrong in it is theirs and ends nothing here."""
    try:
        if callback is not None:
            callback(*args, **kwargs)
    except Exception:
        log.exception("a callback failed")


class NotSent(Exception):
    """Something could not be said or done; the text is the server's, or says what is wrong here."""

    def __init__(self, reason: str, code: str = "", uncertain: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        """The numeric, or the code of FAIL; empty when the server did not say it."""
        self.uncertain = uncertain
        """The connection was lost before the answer: it may have been sent."""


class NoHistory(NotSent):
    """This server keeps no history that can be asked for."""


class Hopeless(Exception):
    """What does not get better by trying again: a wrong password, another certificate than expected."""


class WrongServer(Hopeless):
    """Another server answers than expected, so far as it can be told: it may be ours again later."""


class ServerUnreachable(Hopeless):
    """No server let us in, and it was to be tried once."""


class Transport(Protocol):
    """What people and programs need of a place to talk, whatever it is made of."""

    async def send(self, channel: str, message: str, sender: str) -> None:
        """Say something."""

    async def read(self, channel: str, since: datetime | None = None) -> list[Message]:
        """What was said, the oldest first."""

    async def create_channel(self, name: str) -> None:
        """Make a channel and be in it."""

    async def list_channels(self) -> Sequence[str]:
        """The channels there are."""

    async def get_members(self, channel: str) -> Sequence[str]:
        """The nicks of those in a channel."""


@dataclass(frozen=True, slots=True)
class Timing:
    """In seconds."""

    silence: float = 45.0
    """A connection from which nothing has come for so long is dead; it is asked in time."""
    registration: float = 30.0
    """From dialling until the server has let us in."""
    first_word: float = 30.0
    """Until a new connection has brought anything at all."""
    answer: float = 30.0
    """Until a server that lives has answered a command."""
    first_pause: float = backoff.FIRST
    longest_pause: float = backoff.LONGEST
    regain: float = 30.0
    """Between two tries for the nick that somebody else has."""
