"""Interface of skills: ``Skill`` to extend, ``Host`` to use, ``@hook``, ``@repeatable``.

A skill is a service of the whole server, found by its entry point. It hears events by methods with ``@hook``, answers
verbs by methods with ``@command``, and has settings, a folder and background tasks of its own. See
docs/server/skills.md for how to write one.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from culture.config.model import ServerConfig
from culture.config.values import Settings
from culture.lib.files import private_directory
from culture.protocol.message import Message
from culture.runtime import Runtime
from culture.server.commands import marked
from culture.server.context import Context, ServerParts
from culture.server.core import operator_notices
from culture.server.core.batches import MessageBatch
from culture.server.core.ids import EventId, Ids
from culture.server.core.network import Network
from culture.server.core.recent_messages import Trace
from culture.server.core.router import REPEATABLE
from culture.server.core.session import Session
from culture.server.core.state import User
from culture.server.errors import is_end
from culture.server.events import Event, Said, ToldOpen
from culture.server.metrics import Read
from culture.server.net.connection import ClientConnection
from culture.server.net.layers import Layer
from culture.server.net.poller import Flushable

_MARK = "__hook__"
_DEEPEST = 20  # events in a chain that a skill's own events cause
F = TypeVar("F", bound=Callable[..., None])


def hook(*kinds: type) -> Callable[[F], F]:
    """Mark a skill's method to be called with each event of these kinds, after clients got it."""

    def mark(function: F) -> F:
        setattr(function, _MARK, kinds)
        return function

    return mark


def repeatable(function: F) -> F:
    """Mark a hook that recognises events it has had: after a crash it is called with them again."""
    setattr(function, REPEATABLE, True)
    return function


def hooks(place: object) -> Iterator[tuple[Callable[[Any], None], tuple[type, ...]]]:
    """Yield the methods of an object that are marked as hooks, each with its kinds of events."""
    return marked(place, _MARK)


class Host:
    """The part of the server that a skill can use."""

    def __init__(self, parts: ServerParts, name: str, failed: Callable[[BaseException], None]) -> None:
        self._parts = parts
        self._skill = name
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._is_over = False
        self.failed = failed
        """Switches the skill off; call it, in any thread, with an error of the skill's own."""

    @property
    def name(self) -> str:
        """Return the server's name, which is the source of its replies."""
        return self._parts.router.name

    @property
    def config(self) -> ServerConfig:
        """Return the server's settings in force."""
        return self._parts.config

    @property
    def folder(self) -> Path:
        """Return the skill's own folder (mode 0700), created on first use and kept across restarts."""
        return private_directory(self._parts.config.data_dir / self._skill)

    @property
    def network(self) -> Network:
        """Return the network: users and channels, to be read only."""
        return self._parts.network

    @property
    def by(self) -> Session | None:
        """Return, within a hook, the local session that caused the event; None if no session did."""
        return self._parts.router.by

    @property
    def concerned(self) -> tuple[str, ...]:
        """Return, within a hook on Left or Renamed, the names of the channels that the user was in."""
        return self._parts.router.concerned

    def owner_of(self, nick: str) -> str | None:
        """Return the name of the account that owns a nick, in use or not; None if no account does."""
        account = self._parts.accounts.owner_of(nick)
        return None if account is None else account.name

    def sessions(self, user: User) -> Iterable[Session]:
        """Return the user's sessions on this server."""
        return tuple(self._parts.router.sessions.get(user, ()))

    def take(self, session: Session) -> ClientConnection:
        """End a session whose client is a server, without a QUIT, and return its connection."""
        return self._parts.hand_over(session)

    def connect(self, sock: socket.socket, layer: Layer | None = None) -> ClientConnection:
        """Return a connection on this socket; call its ``start`` with the object that gets the data.

        ``layer``: converts the bytes, such as TLS.
        """
        return self._parts.connect(sock, layer)

    @property
    def dirty(self) -> list[Flushable]:
        """Return the list of connections that are flushed at the end of the turn.

        Who queues the first line of a turn for a connection adds the connection.
        """
        return self._parts.router.dirty

    @property
    def ids(self) -> Ids:
        """Return the object that makes event ids."""
        return self._parts.router.ids

    @property
    def runtime(self) -> Runtime:
        """Return the server's clock, random numbers, threads, databases and sockets."""
        return self._parts.runtime

    def monotonic(self) -> float:
        """Return the monotonic time in seconds; ``last_active`` of a connection is in this time."""
        return self._parts.runtime.monotonic()

    def stamp(self) -> EventId:
        """Return a new event id with the present time."""
        return self._parts.router.ids.stamp()

    def now(self) -> float:
        """Return the present time (seconds since 1970)."""
        return self._parts.router.ids.now()

    def publish(self, event: Event) -> None:
        """Publish an event: apply it, send it to all who see it, and call the hooks on it.

        Raises RecursionError if events of this skill cause each other without end.
        """
        if self._parts.router.depth >= _DEEPEST:
            raise RecursionError(f"{type(event).__name__} follows from what the skill did itself, again and again")
        self._parts.router.follow(event)

    def repeat(self, event: Event | ToldOpen) -> None:
        """Send an earlier event, or a ``ToldOpen`` about one, to the hooks marked as repeatable."""
        self._parts.router.repeat(event)

    def go_first(self, wait: Callable[[float], bool], has_room: Callable[[], bool]) -> None:
        """Make this skill the first of those that store events: the others wait for it.

        ``wait`` blocks, at most the given seconds, until what this skill received is stored, and returns whether it
        is. ``has_room`` returns whether the last event will be stored.
        """
        self._parts.offers.wait_for_first = wait
        self._parts.offers.first_has_room = has_room

    def await_first(self, patience: float) -> bool:
        """Block until the first skill that stores events has stored what it received so far.

        Which skill is the first, ``go_first`` says. Returns False if it has not stored all within ``patience``
        seconds: then the calling skill must not store it either.
        """
        return self._parts.offers.wait_for_first(patience)

    def had_room(self) -> bool:
        """Return whether the first skill that stores events will store the present event.

        Which skill is the first, ``go_first`` says. If it stores the event, the event counts as stored.
        """
        return self._parts.offers.first_has_room()

    def keeps(self, mark: Callable[[], Callable[[], bool]]) -> None:
        """Register this skill as one that stores events, for which others can wait.

        ``mark()`` returns a function, callable in any thread, that returns whether everything received before the
        call of ``mark`` is on disk.
        """

        def marked() -> Callable[[], bool]:
            is_kept = mark()
            return lambda: self._is_over or is_kept()

        self._parts.offers.durability_marks.append(marked)

    def kept(self) -> Callable[[], bool]:
        """Return a function that says whether all skills that store events have them on disk.

        It is about the events that these skills received before this call.
        """
        marks = [mark() for mark in self._parts.offers.durability_marks]
        return lambda: all(is_kept() for is_kept in marks)

    def batch(self, kind: str, *params: str) -> MessageBatch:
        """Return a new IRCv3 batch of type ``kind``, for ``within``; the caller closes it afterwards."""
        return MessageBatch(self.name, kind, *params)

    def within(self, batch: MessageBatch) -> AbstractContextManager[None]:
        """Return the context in which lines of all published events are sent as parts of the batch."""
        return self._parts.router.within(batch)

    def turn(self) -> AbstractContextManager[None]:
        """Return the context for sending outside of hooks and verbs: output is written at its end."""
        return self._parts.turn()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine until the skill or the server ends; an error of it switches the skill off."""
        if self._is_over:
            work.close()
            return
        task = self._parts.tasks.start(self._guarded(work))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        # A task that is cancelled before its first step would leave the coroutine unawaited.
        task.add_done_callback(lambda _: work.close())

    def when_gone(self, forget: Callable[[Session], None]) -> None:
        """Call ``forget`` with each session when it ends."""

        def gone(session: Session) -> None:
            try:
                if not self._is_over:
                    forget(session)
            except BaseException as error:
                self._report(error)

        self._parts.on_session_end.append(gone)

    def when_attached(self, show: Callable[[Session], None]) -> None:
        """Call ``show`` with each further session of a connected user, after it got its channels."""

        def attached(session: Session) -> None:
            try:
                if not self._is_over:
                    show(session)
            except BaseException as error:
                self._report(error)

        self._parts.on_session_attach.append(attached)

    def remember(self, find: Callable[[Context, str, str, bool], Awaitable[Trace | None]]) -> None:
        """Let users redact messages that ``find`` returns, as well as those in the server's memory.

        ``find`` takes the asker, a target, a msgid, and a flag: False finds what the asker may redact, True all that
        the asker may read.
        """

        async def found(ctx: Context, target: str, msgid: str, reading: bool) -> Trace | None:
            try:
                return None if self._is_over else await find(ctx, target, msgid, reading)
            except BaseException as error:
                self._report(error)
                return None

        self._parts.offers.find_older = found

    def offer_stored(self, find: Callable[[str], Awaitable[Said | None]]) -> None:
        """Let other skills find a stored message by id; ``find`` returns it, or None.

        ``find`` raises LookupError if the store cannot be read.
        """

        async def found(msgid: str) -> Said | None:
            if self._is_over:
                raise LookupError(f"the skill {self._skill} is off")
            return await find(msgid)

        self._parts.offers.find_stored = found

    async def find_stored(self, msgid: str) -> Said | None:
        """Return the stored message with this id; None if there is none.

        Raises LookupError if the store cannot be read now.
        """
        if self._parts.offers.find_stored is None:
            raise LookupError("the history of this server is off")
        return await self._parts.offers.find_stored(msgid)

    def offer_closed(self, find: Callable[[Sequence[str]], Awaitable[Mapping[str, bool]]]) -> None:
        """Let other skills ask whether channels were closed when stored messages were sent.

        ``find`` takes ids of messages and returns id → whether the channel was closed.
        """

        async def found(msgids: Sequence[str]) -> Mapping[str, bool]:
            return {} if self._is_over else await find(msgids)

        self._parts.offers.find_closed = found

    async def find_closed(self, msgids: Sequence[str]) -> Mapping[str, bool]:
        """Return id → whether the channel was closed when the message was sent, for stored messages.

        Ids of messages for which this is not recorded are missing.
        """
        return {} if self._parts.offers.find_closed is None else await self._parts.offers.find_closed(msgids)

    def stats(self, letter: str, rows: Callable[[Context], Iterable[Message]]) -> None:
        """Answer ``STATS letter`` of IRC operators with the lines that ``rows`` returns."""
        self._parts.offers.stats[letter] = lambda ctx: () if self._is_over else rows(ctx)

    def gauge(self, name: str, about: str, read: Read) -> None:
        """Add a metric ``culture_<name>`` whose value goes up and down.

        ``about``: its help text. ``read``: returns its present value; called on the event loop.
        """
        self._parts.metrics.gauge(f"culture_{name}", about, lambda: () if self._is_over else read())

    def counter(self, name: str, about: str, read: Read) -> None:
        """Add a metric ``culture_<name>`` whose value only grows; the name ends with ``_total``.

        ``about``: its help text. ``read``: returns its present value; called on the event loop.
        """
        self._parts.metrics.counter(f"culture_{name}", about, lambda: () if self._is_over else read())

    def tell_operators(self, text: str) -> None:
        """Log a text, and send it as a notice to the IRC operators of this server.

        Callable in any thread.
        """
        self._parts.skills.on_loop(operator_notices.tell, self._parts, f"{self._skill}: {text}")

    def over(self) -> None:
        """Cancel the skill's tasks and stop its callbacks, because the skill is switched off."""
        self._is_over = True
        current = asyncio.current_task() if self._tasks else None
        for task in self._tasks:
            if task is not current:
                task.cancel()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except BaseException as error:
            self._report(error)

    def _report(self, error: BaseException) -> None:
        if is_end(error):
            raise error
        self.failed(error)


class Skill:
    """The base class of skills: a subclass sets ``name`` and overrides what it needs.

    Methods with ``@hook`` are called with events, methods with ``@command`` answer verbs. Both run on the event loop
    and must not block; for what takes time use a ``Later``, a task of ``host.start`` or a thread.
    """

    name: ClassVar[str]
    """The name of its entry point."""
    Settings: ClassVar[type[Settings]] = Settings
    """The model of its settings in culture.yaml."""

    def __init__(self, host: Host, settings: Any) -> None:
        self.host = host
        self.settings = settings

    async def start(self) -> None:
        """Open what the skill needs; called while no client is connected yet."""

    async def leave(self) -> None:
        """Say goodbye to other machines; called when the clients were told of the server's end.

        The other skills still work at that time.
        """

    async def stop(self) -> None:
        """Close what the skill has open; called without clients, and also after ``start`` failed."""

    def places(self) -> Iterable[object]:
        """Return the objects that have the skill's hooks and verbs; called once, before ``start``."""
        return (self,)

    def caps(self) -> Mapping[str, str | None]:
        """Return the skill's capabilities with their values; called once, before ``start``."""
        return {}

    def isupport(self) -> Iterable[str]:
        """Return the skill's tokens for 005 (ISUPPORT); called once, before ``start``."""
        return ()
