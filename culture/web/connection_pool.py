"""IRC connections of people at the page: one per account, shared by all tabs.

A connection is opened by the first request of a person and closed after five minutes without an open tab. What arrives
on it becomes events for the tabs (:mod:`culture.web.event_stream`) and unread counts (:mod:`culture.web.unread`).

A lost connection reconnects by itself, and would keep trying for long if the account was revoked meanwhile. So the pool
tries a second login for it: if the server refuses that, the person is logged out of the page (``on_refused``).
"""

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
from culture.web.event_stream import EventStream
from culture.web.message_view import render_messages
from culture.web.page import WebPerson
from culture.web.unread import MARKREAD, Conversations, apply_marker, is_addressed_to, load_unread

log = logging.getLogger(__name__)

IDLE = 300.0
"""Seconds without an open tab until a connection is closed."""
_OPEN_TIMEOUT = 15.0
_CHECK_INTERVAL = 5.0
_CHECK_TIMEOUT = 3.0
_TIMING = Timing(longest_pause=5.0)
"""Reconnect quickly: a person is waiting."""
_MEMBER_VERBS = frozenset({"JOIN", "PART", "KICK", "QUIT", "NICK", "AWAY", "MODE", "ACCOUNT"})
_ROOM_VERBS = frozenset({"JOIN", "PART", "KICK", "RENAME"})

IdentityOf = Callable[[WebPerson], ClientIdentity]
OnPersonMessage = Callable[["WebConnection", Message], None]
OnRefused = Callable[[str], None]


class WebConnection:
    """The IRC connection of one person, with the person's event stream and unread counts."""

    def __init__(self, person: WebPerson, address: Address, identity: ClientIdentity) -> None:
        self.person = person
        self.events = EventStream()
        self.conversations = Conversations()
        self.irc = IRCTransport(
            address,
            identity,
            on_message=self._on_message,
            on_state=self._on_state,
            on_line=self._on_line,
            timing=_TIMING,
        )
        self.state = ConnectionState.CONNECTING
        self.reason = ""
        self.used_at = 0.0
        self.on_lost: Callable[[], None] | None = None
        self.listeners: set[OnMessage] = set()
        """Called with every message."""

    async def open(self, first: str) -> None:
        """Connect, join the room ``first`` if the person is in none, and load the unread counts."""
        await self.irc.start()
        if not self.irc.channels:
            with suppress(NotSent):
                await self.irc.join_channel(first)
        await load_unread(self.irc, self.conversations)

    def _on_message(self, message: Message) -> None:
        is_for_reader = is_addressed_to(message, self.irc.nick)
        self.conversations.get_or_add(message.channel, message.private).add(message, is_for_reader)
        data = {
            "room": message.channel,
            "id": message.msgid,
            "html": render_messages([message], self.irc.nick),
            "calls": is_for_reader,
            "own": message.own,
        }
        self.events.publish("message", data)
        for listener in tuple(self.listeners):
            listener(message)

    def _on_state(self, state: ConnectionState, reason: str) -> None:
        self.state, self.reason = state, reason
        self.events.publish("state", {"condition": state.value, "reason": reason})
        if state in (ConnectionState.LOST, ConnectionState.HOPELESS) and self.on_lost is not None:
            self.on_lost()

    def _on_line(self, line: Line) -> None:
        if line.verb == MARKREAD and line.params:
            target = line.params[0]
            apply_marker(self.conversations.get_or_add(target, private=not is_channel(target)), line)
            self.events.publish("rooms", {})
        elif line.verb == "TOPIC" and line.params:
            self.events.publish("topic", {"room": line.params[0]})
        if line.verb in _MEMBER_VERBS:
            self.events.publish(
                "members", {"room": line.params[0] if line.params and is_channel(line.params[0]) else ""}
            )
        if line.verb in _ROOM_VERBS and self.irc.view.is_self(line.source):
            self.events.publish("rooms", {})


class WebConnectionPool:
    """The IRC connections that are open for people at the web page, one per account.

    ``on_refused`` is called with an account whose login the server refuses.
    """

    def __init__(
        self,
        address: Address,
        identity_of: IdentityOf,
        first: str,
        *,
        on_refused: OnRefused,
        on_message: OnPersonMessage | None = None,
        idle: float = IDLE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = address
        self._identity_of = identity_of
        self._first = first
        self._on_refused = on_refused
        self.on_message = on_message
        self._idle = idle
        self._clock = clock
        self._connections: dict[str, WebConnection] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._kept_open: set[str] = set()
        self._lost = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the background task that closes idle connections and checks lost ones."""
        self._task = asyncio.create_task(self._supervise())

    def keep_open(self, account: str) -> None:
        """Keep the connection of an account open even while the person has no open tab."""
        self._kept_open.add(fold(account))

    @property
    def open(self) -> list[WebConnection]:
        """All connections that are open."""
        return list(self._connections.values())

    def get(self, account: str) -> WebConnection | None:
        """Return the open connection of an account, or None."""
        return self._connections.get(fold(account))

    async def of(self, person: WebPerson) -> WebConnection:
        """Return the connection of a person, opened if needed; ``NotSent`` if that fails."""
        key = fold(person.account)
        async with self._locks.setdefault(key, asyncio.Lock()):
            connection = self._connections.get(key)
            if connection is not None and connection.state is ConnectionState.HOPELESS:
                await self._close(key)
                connection = None
            if connection is None:
                connection = await self._open(key, person)
            connection.used_at = self._clock()
            return connection

    async def _open(self, key: str, person: WebPerson) -> WebConnection:
        connection = WebConnection(person, self._address, self._identity_of(person))
        if self.on_message is not None:
            connection.listeners.add(partial(self.on_message, connection))
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT):
                await connection.open(self._first)
            self._connections[key] = connection
        except Hopeless as refused:
            if not isinstance(refused, WrongServer):
                self._on_refused(person.account)
            raise NotSent(f"the server refuses the login of {person.nick}: {refused}") from None
        except TimeoutError:
            raise NotSent("the server does not answer at the moment: try again") from None
        finally:
            # Also on cancellation: a connection that is not in the pool would never be closed.
            if self._connections.get(key) is not connection:
                await connection.irc.stop("")
        connection.on_lost = self._lost.set
        log.info("%s opened the page", connection.irc.nick)
        return connection

    async def _supervise(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CHECK_INTERVAL):
                    await self._lost.wait()
            self._lost.clear()
            await self._check_lost()
            await self.close_idle()

    async def _check_lost(self) -> None:
        """Log out of the page, and disconnect, people whose login the server now refuses.

        Only people whose IRC connection is lost are checked, by a second login.
        """
        for key, connection in list(self._connections.items()):
            if connection.state in (ConnectionState.LOST, ConnectionState.HOPELESS) and await self._is_refused(
                connection.person
            ):
                log.info("the server refuses the login of %s: logged out of the page", connection.person.nick)
                self._on_refused(connection.person.account)
                await self._close(key)

    async def _is_refused(self, person: WebPerson) -> bool:
        irc = IRCTransport(self._address, self._identity_of(person))
        try:
            async with asyncio.timeout(_CHECK_TIMEOUT):
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
        """Close the connections of people who have had no open tab for the pool's idle time."""
        before = self._clock() - self._idle
        for key, connection in list(self._connections.items()):
            if connection.events.listeners:
                connection.used_at = self._clock()
            elif connection.used_at <= before and key not in self._kept_open:
                await self._close(key)

    def end_streams(self) -> None:
        """End the event streams of all tabs; each tab reconnects by itself."""
        for connection in self._connections.values():
            connection.events.close()

    async def leave(self, account: str) -> None:
        """Close the connection of an account if one is open."""
        await self._close(fold(account))

    async def _close(self, key: str) -> None:
        connection = self._connections.pop(key, None)
        if connection is not None:
            connection.events.close()
            await connection.irc.stop("the page was closed")
            log.info("connection of %s closed", connection.person.nick)

    async def close(self) -> None:
        """Close all connections and end the pool's background task."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        for key in list(self._connections):
            await self._close(key)
