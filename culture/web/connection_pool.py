"""Where people sit: one connection for each person who looks at the page, in their own name, shared by their tabs."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from culture.protocol.message import Message as Line
from culture.protocol.names import fold, is_channel
from culture.transport import (
    Address,
    ClientIdentity,
    ConnectionState,
    Hopeless,
    IRCTransport,
    Message,
    NotSent,
    Timing,
    WrongServer,
)
from culture.transport.types import OnMessage
from culture.web.event_stream import Hub
from culture.web.message_view import drawn
from culture.web.page import WebPerson
from culture.web.unread import MARKREAD, Talks, calls, note, take_stock

log = logging.getLogger(__name__)

IDLE = 300.0
_OPENING = 15.0
_LOOK = 5.0
_ASKING = 3.0
_TIMING = Timing(longest_pause=5.0)
"""Somebody looks at the page and waits."""
_ABOUT_MEMBERS = frozenset({"JOIN", "PART", "KICK", "QUIT", "NICK", "AWAY", "MODE", "ACCOUNT"})
_ABOUT_ROOMS = frozenset({"JOIN", "PART", "KICK", "RENAME"})

IdentityOf = Callable[[WebPerson], ClientIdentity]
OnHeard = Callable[["WebConnection", Message], None]
OnRefused = Callable[[str], None]


class WebConnection:
    """One person's connection, with what happens on it."""

    def __init__(self, person: WebPerson, address: Address, identity: ClientIdentity) -> None:
        self.person = person
        self.hub = Hub()
        self.talks = Talks()
        self.irc = IRCTransport(
            address, identity, on_message=self._heard, on_state=self._stands, on_line=self._line, timing=_TIMING
        )
        self.condition = ConnectionState.CONNECTING
        self.reason = ""
        self.used_at = 0.0
        self.on_lost: Callable[[], None] | None = None
        self.listeners: set[OnMessage] = set()
        """Those who hear every message."""

    async def open(self, first: str) -> None:
        """Come in; whoever is nowhere yet comes into the first room."""
        await self.irc.start()
        if not self.irc.channels:
            with suppress(NotSent):
                await self.irc.join_channel(first)
        await take_stock(self.irc, self.talks)

    def _heard(self, message: Message) -> None:
        called = calls(message, self.irc.nick)
        self.talks.of(message.channel, message.private).heard(message, called)
        about = {
            "room": message.channel,
            "id": message.msgid,
            "html": drawn([message], self.irc.nick),
            "calls": called,
            "own": message.own,
        }
        self.hub.tell("message", about)
        for listener in tuple(self.listeners):
            listener(message)

    def _stands(self, condition: ConnectionState, reason: str) -> None:
        self.condition, self.reason = condition, reason
        self.hub.tell("state", {"condition": condition.value, "reason": reason})
        if condition in (ConnectionState.LOST, ConnectionState.HOPELESS) and self.on_lost is not None:
            self.on_lost()

    def _line(self, line: Line) -> None:
        if line.verb == MARKREAD and line.params:
            target = line.params[0]
            note(self.talks.of(target, private=not is_channel(target)), line)
            self.hub.tell("rooms", {})
        elif line.verb == "TOPIC" and line.params:
            self.hub.tell("topic", {"room": line.params[0]})
        if line.verb in _ABOUT_MEMBERS:
            self.hub.tell("members", {"room": line.params[0] if line.params and is_channel(line.params[0]) else ""})
        if line.verb in _ABOUT_ROOMS and self.irc.view.is_self(line.source):
            self.hub.tell("rooms", {})


class WebConnectionPool:
    """The seats by account. ``on_refused`` is told the account of whoever the server does not let in any longer."""

    def __init__(
        self,
        address: Address,
        identity_of: IdentityOf,
        first: str,
        *,
        on_refused: OnRefused,
        on_heard: OnHeard | None = None,
        idle: float = IDLE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = address
        self._identity_of = identity_of
        self._first = first
        self._on_refused = on_refused
        self.on_heard = on_heard
        self._idle = idle
        self._clock = clock
        self._seats: dict[str, WebConnection] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._kept: set[str] = set()
        self._lost = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look after the seats from now on."""
        self._task = asyncio.create_task(self._tend())

    def keep(self, account: str) -> None:
        """This one stays, whether anybody looks or not."""
        self._kept.add(fold(account))

    @property
    def open(self) -> list[WebConnection]:
        """All there are."""
        return list(self._seats.values())

    def known(self, account: str) -> WebConnection | None:
        """The seat of an account, if it has one."""
        return self._seats.get(fold(account))

    async def of(self, person: WebPerson) -> WebConnection:
        """The seat of a person; ``NotSent`` where they are not let in, or the server is not there."""
        key = fold(person.account)
        async with self._turns.setdefault(key, asyncio.Lock()):
            seat = self._seats.get(key)
            if seat is not None and seat.condition is ConnectionState.HOPELESS:
                await self._drop(key)
                seat = None
            if seat is None:
                seat = await self._opened(key, person)
            seat.used_at = self._clock()
            return seat

    async def _opened(self, key: str, person: WebPerson) -> WebConnection:
        seat = WebConnection(person, self._address, self._identity_of(person))
        if self.on_heard is not None:
            seat.listeners.add(partial(self.on_heard, seat))
        try:
            async with asyncio.timeout(_OPENING):
                await seat.open(self._first)
            self._seats[key] = seat
        except Hopeless as refused:
            if not isinstance(refused, WrongServer):
                self._on_refused(person.account)
            raise NotSent(f"the server does not let {person.nick} in: {refused}") from None
        except TimeoutError:
            raise NotSent("the server does not answer at the moment: try again") from None
        finally:
            # Whoever does not get this seat knows nothing of its connection, and nobody else would end it.
            if self._seats.get(key) is not seat:
                await seat.irc.stop("")
        seat.on_lost = self._lost.set
        log.info("%s looks at the page", seat.irc.nick)
        return seat

    async def _tend(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await self._lost.wait()
            self._lost.clear()
            await self._check_lost()
            await self.close_idle()

    async def _check_lost(self) -> None:
        """Whether those who were cut off are let in again; a connection that stood before would ask for long."""
        for key, seat in list(self._seats.items()):
            if seat.condition in (ConnectionState.LOST, ConnectionState.HOPELESS) and await self._is_refused(
                seat.person
            ):
                log.info("%s is not let in any longer", seat.person.nick)
                self._on_refused(seat.person.account)
                await self._drop(key)

    async def _is_refused(self, person: WebPerson) -> bool:
        irc = IRCTransport(self._address, self._identity_of(person))
        try:
            async with asyncio.timeout(_ASKING):
                await irc.start()
        except WrongServer:
            return False
        except Hopeless:
            return True
        except TimeoutError:
            return False
        finally:
            await irc.stop("checked")
        return False

    async def close_idle(self) -> None:
        """Those at whose seats nobody has looked for long leave."""
        before = self._clock() - self._idle
        for key, seat in list(self._seats.items()):
            if seat.hub.listeners:
                seat.used_at = self._clock()
            elif seat.used_at <= before and key not in self._kept:
                await self._drop(key)

    def end_streams(self) -> None:
        """Every tab is told that this is the end; it asks again."""
        for seat in self._seats.values():
            seat.hub.close()

    async def leave(self, account: str) -> None:
        """This person is here no more."""
        await self._drop(fold(account))

    async def _drop(self, key: str) -> None:
        seat = self._seats.pop(key, None)
        if seat is not None:
            seat.hub.close()
            await seat.irc.stop("the page was closed")
            log.info("%s looks at the page no more", seat.person.nick)

    async def close(self) -> None:
        """Everybody leaves."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        for key in list(self._seats):
            await self._drop(key)
