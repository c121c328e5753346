"""Push notifications: mentions and private messages that are unread after 10 seconds."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from culture.protocol.names import fold
from culture.protocol.text import Profile, clean
from culture.transport import Message, NotSent
from culture.web.connection_pool import WebConnection, WebConnectionPool
from culture.web.page import WebPerson
from culture.web.templates import room_path

log = logging.getLogger(__name__)

DELAY = 10.0
"""Seconds until an unread message is pushed; people at the page read it before."""
BURST, PERIOD = 5, 600.0
"""At most this many pushes per person in so many seconds; the next one says how many were left out."""
_MAX_AGE = timedelta(minutes=10)
_RECONNECT = 60.0
_LONGEST = 300
_MAX_PENDING = 100


@dataclass(frozen=True, slots=True)
class Push:
    """A push notification: title, text, and the URL that a tap opens."""

    title: str
    text: str
    link: str


class NotPushed(Exception):
    """A push notification could not be sent; the text says why and contains no secrets."""


Post = Callable[[str, Push], Awaitable[None]]


def is_pushed(message: Message, nick: str) -> bool:
    """Return whether to push a message to ``nick``.

    Mentions and private messages are pushed if they are at most 10 minutes old.
    """
    if message.own or message.notice or datetime.now(UTC) - message.timestamp > _MAX_AGE:
        return False
    return message.private or fold(nick) in map(fold, message.mentions)


class Pusher:
    """Sends unread messages as push notifications to people who have configured a push address.

    For each of them the web page keeps an IRC connection open.
    """

    def __init__(
        self,
        addresses: Mapping[str, str],
        url: str,
        connections: WebConnectionPool,
        nick_of: Callable[[str], str],
        post: Post,
        *,
        delay: float = DELAY,
        burst: int = BURST,
        period: float = PERIOD,
    ) -> None:
        self._addresses = {fold(account): address for account, address in addresses.items()}
        self._people = [WebPerson(account, nick_of(account), "") for account in addresses]
        self._url = url
        self._connections = connections
        self._post = post
        self._delay = delay
        self._burst = burst
        self._period = period
        self._pushed: dict[str, deque[float]] = {}
        self._left_out: dict[str, int] = {}
        self._pending: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def pending(self) -> int:
        """Number of messages that will be pushed soon unless they are read first."""
        return len(self._pending)

    def start(self) -> None:
        """Begin to listen to the messages of all people with a push address."""
        self._connections.on_message = self.on_message
        for person in self._people:
            self._connections.keep_open(person.account)
        if self._people:
            self._task = asyncio.create_task(self._keep_connected())

    async def stop(self) -> None:
        """Cancel all pending pushes and stop listening for messages."""
        tasks = [*self._pending, *([self._task] if self._task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_connected(self) -> None:
        while True:
            for person in self._people:
                try:
                    await self._connections.of(person)
                except NotSent as refused:
                    log.warning("cannot listen to the messages of %s, no push: %s", person.account, refused.reason)
            await asyncio.sleep(_RECONNECT)

    def on_message(self, connection: WebConnection, message: Message) -> None:
        """Schedule a push for a mention or private message if its reader has a push address.

        ``connection``: the reader's connection, which received the message.
        """
        account = fold(connection.person.account)
        if (
            account not in self._addresses
            or not is_pushed(message, connection.irc.nick)
            or len(self._pending) >= _MAX_PENDING
        ):
            return
        task = asyncio.create_task(self._push_if_unread(connection, message))
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    async def _push_if_unread(self, connection: WebConnection, message: Message) -> None:
        await asyncio.sleep(self._delay)
        conversation = connection.conversations.get(message.channel)
        read_to = conversation.read_to if conversation is not None else None
        if read_to is not None and read_to >= message.timestamp:
            return
        if await _is_away(connection):
            return
        account = fold(connection.person.account)
        if not self._is_allowed(account):
            self._left_out[account] = self._left_out.get(account, 0) + 1
            return
        try:
            await self._post(self._addresses[account], self._notification(message, self._left_out.pop(account, 0)))
        except NotPushed as failure:
            log.warning("push to %s failed: %s", connection.person.account, failure)

    def _is_allowed(self, account: str) -> bool:
        now, pushed = asyncio.get_running_loop().time(), self._pushed.setdefault(account, deque())
        while pushed and pushed[0] <= now - self._period:
            pushed.popleft()
        if len(pushed) >= self._burst:
            return False
        pushed.append(now)
        return True

    def _notification(self, message: Message, more: int) -> Push:
        where = "" if message.private else f" in {message.channel}"
        text = clean(message.text, Profile.WEB)[:_LONGEST] + (f"\n(and {more} more before)" if more else "")
        link = f"{self._url}{room_path(message.channel)}"
        return Push(f"{clean(message.sender, Profile.WEB)}{clean(where, Profile.WEB)}", text, link)


async def _is_away(connection: WebConnection) -> bool:
    """Return whether the person of a connection is marked as away; False if unknown."""
    with suppress(NotSent):
        return any(member.away for member in await connection.irc.send_who(connection.irc.nick))
    return False
