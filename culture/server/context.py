"""What a handler may do."""

import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from culture.config.model import ServerConfig
from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.server.auth.account_store import AccountStore
from culture.server.auth.authenticator import Authenticator
from culture.server.auth.login_attempts import Logins
from culture.server.commands import Command
from culture.server.core.encode import wire
from culture.server.core.ids import EventId
from culture.server.core.multiline import MultilineBatches
from culture.server.core.network import Network
from culture.server.core.recent_messages import RecentMessages, Trace
from culture.server.core.router import Router
from culture.server.core.session import Session
from culture.server.core.state import Channel, User
from culture.server.core.tasks import ServerTasks
from culture.server.core.visibility import no_such_channel, no_such_nick
from culture.server.errors import Failed, Refused
from culture.server.events import Event, Said
from culture.server.metrics import Metrics
from culture.server.net.connection import ClientConnection
from culture.server.net.layers import Layer
from culture.server.subscriptions.metadata import Subscriptions
from culture.server.subscriptions.monitor import Monitors
from culture.server.subscriptions.read_markers import ReadMarkers

if TYPE_CHECKING:
    from culture.server.skill_host.running_skills import Skills

_LONGEST_WORD = 200  # bytes: a reply that repeats it still has room for its own text


@dataclass(slots=True)
class ServerParts:
    """The parts of a running server that handlers share; ``config`` changes with REHASH."""

    config: ServerConfig
    network: Network
    router: Router
    authenticator: Authenticator
    accounts: AccountStore
    logins: Logins
    commands: Mapping[str, Command]
    started: float
    rehash: Callable[[], None]
    turn: Callable[[], AbstractContextManager[None]]
    tasks: ServerTasks
    sessions: set[Session]
    endings: list[Callable[[Session], None]]
    """Called with each session that ends, by whoever keeps something about sessions."""
    furthers: list[Callable[[Session], None]]
    """Called with each session that attached to a user who was here already, once it has been shown the channels."""
    monitors: Monitors
    batches: MultilineBatches
    markers: ReadMarkers
    recent: RecentMessages
    subscriptions: Subscriptions
    skills: "Skills"
    metrics: Metrics
    hand_over: Callable[[Session], ClientConnection]
    """The connection of a session that turned out to be a server; the session is no more."""
    connect: Callable[[socket.socket, Layer | None], ClientConnection]
    """A connection on a socket that leads to another server."""
    stats: "dict[str, Callable[[Context], Iterable[Message]]]" = field(default_factory=dict)
    """What STATS answers operators, by its letter; the skills'."""
    older: "Callable[[Context, str, str, bool], Awaitable[Trace | None]] | None" = None
    """Finds a message of a target by its id where ``recent`` does not, for those who are logged in: what they may take
    back, or (True) all that they may read; a skill's."""
    stored: "Callable[[str], Awaitable[Said | None]] | None" = None
    """Finds a message by its id whatever its target, for the server itself; a skill's. None where nothing is stored;
    LookupError where it cannot be told now."""
    closed: "Callable[[Sequence[str]], Awaitable[Mapping[str, bool]]] | None" = None
    """Tells of stored messages, by id, whether the channel was closed; a skill's. None where nothing is stored."""
    sooner: "Callable[[float], bool]" = lambda patience: True
    """Waits for the skill that keeps events before the others; False where it has not within so many seconds."""
    has_room: "Callable[[], bool]" = lambda: True
    """Had that skill room for the event that is being heard?"""
    keepers: "list[Callable[[], Callable[[], bool]]]" = field(default_factory=list)
    """Of each skill that keeps events: called it notes what has come by now, and what it returns tells whether all that
    is on disk."""


class Context:
    """One session's view of the server, given to every handler."""

    __slots__ = ("network", "parts", "router", "session")

    def __init__(self, parts: ServerParts, session: Session) -> None:
        self.parts = parts
        self.session = session
        self.network = parts.network
        self.router = parts.router

    @property
    def config(self) -> ServerConfig:
        """The settings in force."""
        return self.parts.config

    @property
    def user(self) -> User:
        """Who is asking; only for handlers that come after registration."""
        user = self.session.user
        if user is None:
            raise Refused(Numeric.ERR_NOTREGISTERED)
        return user

    @property
    def nick(self) -> str:
        """The name by which replies address this client."""
        user = self.session.user
        return user.nick if user is not None else "*"

    def stamp(self) -> EventId:
        """The id and time of a new event."""
        return self.router.ids.stamp()

    def now(self) -> float:
        """The time (seconds since 1970)."""
        return self.router.ids.now()

    def publish(self, event: Event) -> None:
        """Make it so."""
        self.router.publish(event, self.session)

    def reply(self, numeric: Numeric, *params: str, text: str | None = None) -> None:
        """Answer with a numeric; its standard text comes last, or ``text`` in its place."""
        self.session.send(wire(self.numeric(numeric, *params, text=text)))

    def numeric(self, numeric: Numeric, *params: str, text: str | None = None) -> Message:
        """The line that ``reply`` sends."""
        said = numeric.text if text is None else text
        return Message(numeric.code, (self.nick, *params, said) if said else (self.nick, *params), self.router.name)

    def send(self, verb: str, *params: str, source: str | None = None) -> None:
        """Answer with a line from the server, or from ``source``."""
        self.session.send(wire(Message(verb, params, self.router.name if source is None else source)))

    def pull(self, rows: Iterable[Message]) -> None:
        """Answer with many lines, produced as the client reads them."""
        self.session.pull(map(wire, rows))

    def bounded(self, rows: Iterator[Message], *about: str) -> Iterator[Message]:
        """As many rows as one question may get, and 416 where there are more."""
        yield from islice(rows, self.config.limits.rows)
        if next(rows, None) is not None:
            yield self.numeric(Numeric.ERR_TOOMANYMATCHES, *map(as_word, about))

    def find_user(self, nick: str) -> User:
        """The user of this nick, else 401 with the nearest one."""
        user = self.network.user(nick)
        if user is None:
            raise Refused(Numeric.ERR_NOSUCHNICK, nick, text=no_such_nick(self.network, self.user, nick))
        return user

    def find_channel(self, name: str) -> Channel:
        """The channel of this name, else 403 with the nearest one."""
        channel = self.network.channel(name)
        if channel is None:
            raise Refused(Numeric.ERR_NOSUCHCHANNEL, name, text=no_such_channel(self.network, self.user, name))
        return channel

    def each(self, act: Callable[..., None], *args: object) -> None:
        """Do one part of a list command; a refusal is told and the rest goes on."""
        try:
            act(self, *args)
        except Refused as refused:
            self.refuse(refused)
        except Failed as failed:
            self.fail(failed)

    def refuse(self, refused: Refused) -> None:
        """Tell the client what we declined; what it sent comes back as words that fit in the line."""
        self.reply(refused.numeric, *map(as_word, refused.params), text=refused.text)

    def fail(self, failed: Failed) -> None:
        """The same as a standard reply."""
        *words, text = failed.params
        self.send("FAIL", *map(as_word, words), text)


def as_word(text: str) -> str:
    """Text of a client as a parameter before the last one."""
    fits = text and " " not in text and text[0] != ":" and len(text.encode()) <= _LONGEST_WORD
    return text if fits else "*"
