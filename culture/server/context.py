"""The parts of a running server, and what a handler gets of them.

``ServerParts`` is deliberately one plain record: handlers, skills and background tasks each need another few of its
fields, and a constructor per handler would name them again and again. Handlers do not take it whole, they take a
``Context``: the session that asks, with shortcuts for what most of them do.
"""

import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from culture.config.model import ServerConfig
from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.runtime import REAL, Runtime
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

_LONGEST_WORD = 200  # bytes of client text that a reply repeats


@dataclass(slots=True)
class SkillOffers:
    """Functions that skills offer to handlers and to each other.

    At most one skill provides each field.
    """

    stats: "dict[str, Callable[[Context], Iterable[Message]]]" = field(default_factory=dict)
    """The answers to STATS for operators, by letter."""
    find_older: "Callable[[Context, str, str, bool], Awaitable[Trace | None]] | None" = None
    """Finds the author of a message to a target by its id, if ``recent`` does not know it.

    With False it finds what the asker may redact, with True all that the asker may read.
    """
    find_stored: "Callable[[str], Awaitable[Said | None]] | None" = None
    """Finds a stored message by its id; LookupError if it cannot tell. None: no history."""
    find_closed: "Callable[[Sequence[str]], Awaitable[Mapping[str, bool]]] | None" = None
    """Tells by msgid whether the channel of stored messages was closed. None: no history."""
    wait_for_first: "Callable[[float], bool]" = lambda patience: True
    """Blocks until the first storing skill has stored all so far; False after ``patience`` s."""
    first_has_room: "Callable[[], bool]" = lambda: True
    """Returns whether the first storing skill will store the present event."""
    durability_marks: "list[Callable[[], Callable[[], bool]]]" = field(default_factory=list)
    """Per storing skill: `mark()` returns a function: is everything before the mark on disk?"""


@dataclass(slots=True)
class ServerParts:
    """The parts of a running server that handlers share; ``config`` is replaced by REHASH."""

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
    sessions: dict[Session, None]
    on_session_end: list[Callable[[Session], None]]
    """Called with each session that ended."""
    on_session_attach: list[Callable[[Session], None]]
    """Called with each further session of a present user, after it got its channels."""
    monitors: Monitors
    batches: MultilineBatches
    markers: ReadMarkers
    recent: RecentMessages
    subscriptions: Subscriptions
    skills: "Skills"
    metrics: Metrics
    hand_over: Callable[[Session], ClientConnection]
    """Takes the connection of a session that turned out to be a server; ends it silently."""
    connect: Callable[[socket.socket, Layer | None], ClientConnection]
    """Makes a connection to another server from a socket."""
    offers: SkillOffers = field(default_factory=SkillOffers)
    runtime: Runtime = REAL


class Context:
    """Context of a verb handler: one session, and its view of the server."""

    __slots__ = ("network", "parts", "router", "session")

    def __init__(self, parts: ServerParts, session: Session) -> None:
        self.parts = parts
        self.session = session
        self.network = parts.network
        self.router = parts.router

    @property
    def config(self) -> ServerConfig:
        """Return the server's settings in force."""
        return self.parts.config

    @property
    def user(self) -> User:
        """Return the session's user; raises Refused (451) before registration."""
        user = self.session.user
        if user is None:
            raise Refused(Numeric.ERR_NOTREGISTERED)
        return user

    @property
    def nick(self) -> str:
        """Return the name by which replies address this client: its nick, ``*`` before registration."""
        user = self.session.user
        return user.nick if user is not None else "*"

    def stamp(self) -> EventId:
        """Return a new event id with the present time."""
        return self.router.ids.stamp()

    def now(self) -> float:
        """Return the present time (seconds since 1970)."""
        return self.router.ids.now()

    def publish(self, event: Event) -> None:
        """Publish an event that this session caused: apply it and send it to all who see it."""
        self.router.publish(event, self.session)

    def reply(self, numeric: Numeric, *params: str, text: str | None = None) -> None:
        """Send the client a numeric with these parameters, then ``text`` or its standard text."""
        self.session.send(wire(self.numeric(numeric, *params, text=text)))

    def numeric(self, numeric: Numeric, *params: str, text: str | None = None) -> Message:
        """Return the line of a numeric with these parameters, then ``text`` or its standard text."""
        words = numeric.text if text is None else text
        return Message(numeric.code, (self.nick, *params, words) if words else (self.nick, *params), self.router.name)

    def send(self, verb: str, *params: str, source: str | None = None) -> None:
        """Send the client a line with this verb and parameters; ``source`` None: from the server."""
        self.session.send(wire(Message(verb, params, self.router.name if source is None else source)))

    def pull(self, rows: Iterable[Message]) -> None:
        """Send the client many lines, which are produced only as fast as the client reads them."""
        self.session.pull(map(wire, rows))

    def bounded(self, rows: Iterator[Message], *about: str) -> Iterator[Message]:
        """Yield rows up to the number in the setting ``limits.rows``, then numeric 416 for the rest.

        ``about``: the parameters of the 416, such as the mask of the search.
        """
        yield from islice(rows, self.config.limits.rows)
        if next(rows, None) is not None:
            yield self.numeric(Numeric.ERR_TOOMANYMATCHES, *map(as_word, about))

    def find_user(self, nick: str) -> User:
        """Return the user with this nick.

        Raises Refused (401) if there is none; its text suggests the most similar nick.
        """
        user = self.network.user(nick)
        if user is None:
            raise Refused(Numeric.ERR_NOSUCHNICK, nick, text=no_such_nick(self.network, self.user, nick))
        return user

    def find_channel(self, name: str) -> Channel:
        """Return the channel with this name.

        Raises Refused (403) if there is none; its text suggests the most similar name.
        """
        channel = self.network.channel(name)
        if channel is None:
            raise Refused(Numeric.ERR_NOSUCHCHANNEL, name, text=no_such_channel(self.network, self.user, name))
        return channel

    def each(self, act: Callable[..., None], *args: object) -> None:
        """Call ``act(*args)`` for one item of a command with a list, such as one channel of JOIN.

        If it raises Refused or Failed, send that to the client, so that the command can go on with the other items.
        """
        try:
            act(self, *args)
        except Refused as refused:
            self.refuse(refused)
        except Failed as failed:
            self.fail(failed)

    def refuse(self, refused: Refused) -> None:
        """Send the client the numeric of a refusal.

        Words of the client that fit no parameter become ``*``.
        """
        self.reply(refused.numeric, *map(as_word, refused.params), text=refused.text)

    def fail(self, failed: Failed) -> None:
        """Send the client a refusal as an IRCv3 standard reply (FAIL)."""
        *words, text = failed.params
        self.send("FAIL", *map(as_word, words), text)


def as_word(text: str) -> str:
    """Return text of a client if it can be a parameter in the middle of a line, else ``*``."""
    fits = text and " " not in text and text[0] != ":" and len(text.encode()) <= _LONGEST_WORD
    return text if fits else "*"
