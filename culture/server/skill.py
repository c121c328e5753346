"""What a skill is: a service of the whole server, with hooks on events, verbs, settings and a folder of its own."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from culture.config.model import ServerConfig
from culture.config.paths import private_directory
from culture.config.values import Settings
from culture.protocol.message import Message
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
_DEEPEST = 20  # events that follow from one another
F = TypeVar("F", bound=Callable[..., None])


def hook(*kinds: type) -> Callable[[F], F]:
    """Mark a method to be called with each event of these kinds, after it happened and was shown."""

    def mark(function: F) -> F:
        setattr(function, _MARK, kinds)
        return function

    return mark


def repeatable(function: F) -> F:
    """Mark a hook that knows what it has heard: after a crash it may be called again with what it may have lost."""
    setattr(function, REPEATABLE, True)
    return function


def hooks(place: object) -> Iterator[tuple[Callable[[Any], None], tuple[type, ...]]]:
    """The marked methods of an object, and what each wants to hear of."""
    return marked(place, _MARK)


class Host:
    """What a skill may use of the server it is part of."""

    def __init__(self, parts: ServerParts, name: str, failed: Callable[[BaseException], None]) -> None:
        self._parts = parts
        self._skill = name
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False
        self.failed = failed
        """Call with what went wrong in a thread or callback of the skill's own, any thread may: it is switched off."""

    @property
    def name(self) -> str:
        """The server's name: where answers come from."""
        return self._parts.router.name

    @property
    def config(self) -> ServerConfig:
        """The server's settings in force."""
        return self._parts.config

    @property
    def folder(self) -> Path:
        """A folder for this skill alone, kept from one start to the next; made (0700) when first asked for."""
        return private_directory(self._parts.config.data_dir / self._skill)

    @property
    def network(self) -> Network:
        """Users and channels, to look at; only events change them."""
        return self._parts.network

    @property
    def by(self) -> Session | None:
        """In a hook: the session that caused the event, where it was one of this server's."""
        return self._parts.router.by

    @property
    def concerned(self) -> tuple[str, ...]:
        """In a hook on Left and Renamed: the channels the user was in."""
        return self._parts.router.concerned

    def owner_of(self, nick: str) -> str | None:
        """The account that a nick belongs to, whether somebody has it at present or not."""
        account = self._parts.accounts.owner_of(nick)
        return None if account is None else account.name

    def sessions(self, user: User) -> Iterable[Session]:
        """The user's sessions on this server."""
        return tuple(self._parts.router.sessions.get(user, ()))

    def take(self, session: Session) -> ClientConnection:
        """The connection of a session that turned out to be a server; the session is no more."""
        return self._parts.hand_over(session)

    def connect(self, sock: socket.socket, layer: Layer | None = None) -> ClientConnection:
        """A connection of the server's on this socket, to be started with whoever owns it."""
        return self._parts.connect(sock, layer)

    @property
    def dirty(self) -> list[Flushable]:
        """Where a connection is put that got its first line of a turn."""
        return self._parts.router.dirty

    @property
    def ids(self) -> Ids:
        """Where stamps come from."""
        return self._parts.router.ids

    def monotonic(self) -> float:
        """The time by which connections tell when they were last active."""
        return time.monotonic()

    def stamp(self) -> EventId:
        """The id and time of a new event."""
        return self._parts.router.ids.stamp()

    def now(self) -> float:
        """The time (seconds since 1970)."""
        return self._parts.router.ids.now()

    def publish(self, event: Event) -> None:
        """Make it so; a hook's answer to its own answer, and so on, ends as a failure of the skill."""
        if self._parts.router.depth >= _DEEPEST:
            raise RecursionError(f"{type(event).__name__} follows from what the skill did itself, again and again")
        self._parts.router.follow(event)

    def repeat(self, event: Event | ToldOpen) -> None:
        """Tell of an event of before again, or news of one, those alone who can tell whether they know it."""
        self._parts.router.repeat(event)

    def go_first(self, wait: Callable[[float], bool], has_room: Callable[[], bool]) -> None:
        """Let others who keep events wait for this skill; ``wait`` blocks, not longer than so many seconds.

        ``has_room`` tells whether what this skill heard last is among what it will keep.
        """
        self._parts.sooner = wait
        self._parts.has_room = has_room

    def await_first(self, patience: float) -> bool:
        """Wait for the skill that goes first to have kept what it has heard until now; blocks.

        False where it has not within so many seconds: then this one must not keep it either.
        """
        return self._parts.sooner(patience)

    def had_room(self) -> bool:
        """Will the skill that goes first keep what is heard now? Where not, nobody may be told that it is stored."""
        return self._parts.has_room()

    def keeps(self, mark: Callable[[], Callable[[], bool]]) -> None:
        """Let others know how far this skill keeps events.

        ``mark`` notes what has come by now; what it returns, called later in any thread, tells whether all that is on
        disk.
        """

        def marked() -> Callable[[], bool]:
            is_kept = mark()
            return lambda: self._is_over or is_kept()

        self._parts.keepers.append(marked)

    def kept(self) -> Callable[[], bool]:
        """Note what those who keep events have heard by now: called later, is all of it on disk?"""
        marks = [mark() for mark in self._parts.keepers]
        return lambda: all(is_kept() for is_kept in marks)

    def batch(self, kind: str, *params: str) -> MessageBatch:
        """A batch of this type, for ``within``; to be closed."""
        return MessageBatch(self.name, kind, *params)

    def within(self, batch: MessageBatch) -> AbstractContextManager[None]:
        """What is published in here is shown as a part of the batch, to those who know batches."""
        return self._parts.router.within(batch)

    def turn(self) -> AbstractContextManager[None]:
        """Whatever a skill sends outside of hooks and verbs it sends within one of these."""
        return self._parts.turn()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it beside everything else until the skill or the server ends; if it fails, the skill is switched off."""
        if self._is_over:
            work.close()
            return
        task = self._parts.tasks.start(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task that is cancelled before its first step would leave it unawaited.
        task.add_done_callback(lambda _: work.close())

    def when_gone(self, forget: Callable[[Session], None]) -> None:
        """Call with each session that ends."""

        def gone(session: Session) -> None:
            try:
                if not self._is_over:
                    forget(session)
            except BaseException as error:
                self._report(error)

        self._parts.endings.append(gone)

    def when_attached(self, show: Callable[[Session], None]) -> None:
        """Call with each session that attached to a user who was here already, once it has been shown the channels."""

        def attached(session: Session) -> None:
            try:
                if not self._is_over:
                    show(session)
            except BaseException as error:
                self._report(error)

        self._parts.furthers.append(attached)

    def remember(self, find: Callable[[Context, str, str, bool], Awaitable[Trace | None]]) -> None:
        """Let what ``find`` knows (the asker, a target, a message's id) be taken back, beside what the server knows.

        With True as the last it finds all that the asker may read.
        """

        async def found(ctx: Context, target: str, msgid: str, reading: bool) -> Trace | None:
            try:
                return None if self._is_over else await find(ctx, target, msgid, reading)
            except BaseException as error:
                self._report(error)
                return None

        self._parts.older = found

    def offer_stored(self, find: Callable[[str], Awaitable[Said | None]]) -> None:
        """Let other skills find stored messages with ``find``: by id, whatever the target; LookupError if it cannot."""

        async def found(msgid: str) -> Said | None:
            if self._is_over:
                raise LookupError(f"the skill {self._skill} is off")
            return await find(msgid)

        self._parts.stored = found

    async def find_stored(self, msgid: str) -> Said | None:
        """The stored message with this id, None if there is none; LookupError with a reason if it cannot tell."""
        if self._parts.stored is None:
            raise LookupError("the history of this server is off")
        return await self._parts.stored(msgid)

    def offer_closed(self, find: Callable[[Sequence[str]], Awaitable[Mapping[str, bool]]]) -> None:
        """Let other skills learn from ``find`` of stored messages to channels: was the channel closed, by id."""

        async def found(msgids: Sequence[str]) -> Mapping[str, bool]:
            return {} if self._is_over else await find(msgids)

        self._parts.closed = found

    async def find_closed(self, msgids: Sequence[str]) -> Mapping[str, bool]:
        """Was the channel closed when these messages were said? Only those of which it can be told."""
        return {} if self._parts.closed is None else await self._parts.closed(msgids)

    def stats(self, letter: str, rows: Callable[[Context], Iterable[Message]]) -> None:
        """Answer ``STATS letter`` to operators with these rows."""
        self._parts.stats[letter] = lambda ctx: () if self._is_over else rows(ctx)

    def gauge(self, name: str, about: str, read: Read) -> None:
        """A figure for those who watch the server, which goes up and down; ``read`` is called on the loop."""
        self._parts.metrics.gauge(f"culture_{name}", about, lambda: () if self._is_over else read())

    def counter(self, name: str, about: str, read: Read) -> None:
        """The same for one that only grows; its name ends with ``_total``."""
        self._parts.metrics.counter(f"culture_{name}", about, lambda: () if self._is_over else read())

    def tell_operators(self, text: str) -> None:
        """Log it, and tell the IRC operators who are here; any thread may."""
        self._parts.skills.on_loop(operator_notices.tell, self._parts, f"{self._skill}: {text}")

    def over(self) -> None:
        """The skill is switched off: what it began ends, what it asked to be called for is called no more."""
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
    """Extend this: a name, and whatever of the rest is needed.

    Methods with ``@hook`` are called with events, methods with ``@command`` answer verbs. Both run between two
    messages and must not block; what takes time is a ``Later``, a task of ``host.start`` or a thread.
    """

    name: ClassVar[str]
    """The same as that of its entry point."""
    Settings: ClassVar[type[Settings]] = Settings
    """What its block of culture.yaml may say."""

    def __init__(self, host: Host, settings: Any) -> None:
        self.host = host
        self.settings = settings

    async def start(self) -> None:
        """Open what is needed; no client is there yet."""

    async def leave(self) -> None:
        """Say goodbye to whoever is elsewhere: the clients have been told, and the other skills still work."""

    async def stop(self) -> None:
        """Close what is open; no client is there any more. Called also when ``start`` or something later failed."""

    def places(self) -> Iterable[object]:
        """The objects whose hooks and verbs are the skill's; asked once, before ``start``."""
        return (self,)

    def caps(self) -> Mapping[str, str | None]:
        """The capabilities it offers, with their values; asked once, before ``start``."""
        return {}

    def isupport(self) -> Iterable[str]:
        """What 005 says about it; asked once, before ``start``."""
        return ()
