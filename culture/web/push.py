"""Waking phones: for what is said to a person by name or in private, once they have not read it for a while."""

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
"""Whoever looks at the page reads within that time, and needs no push."""
BURST, PERIOD = 5, 600.0
"""So many pushes to one person within so many seconds; what is more is told with the next one."""
_TOO_OLD = timedelta(minutes=10)
_AGAIN = 60.0
_LONGEST = 300
_WAITING = 100


@dataclass(frozen=True, slots=True)
class Push:
    """What a phone shows, and where a tap leads."""

    title: str
    text: str
    link: str


class NotPushed(Exception):
    """It did not arrive; the text names nothing secret."""


Post = Callable[[str, Push], Awaitable[None]]


def is_for(message: Message, nick: str) -> bool:
    """Whether a phone is woken: for one's name and for private words, never for what agents say among themselves."""
    if message.own or message.notice or datetime.now(UTC) - message.timestamp > _TOO_OLD:
        return False
    return message.private or fold(nick) in map(fold, message.mentions)


class Pusher:
    """Listens at the seats of those whose phones are to be woken; these seats stay, whether anybody looks or not."""

    def __init__(
        self,
        addresses: Mapping[str, str],
        url: str,
        seats: WebConnectionPool,
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
        self._seats = seats
        self._post = post
        self._delay = delay
        self._burst = burst
        self._period = period
        self._pushed: dict[str, deque[float]] = {}
        self._left_out: dict[str, int] = {}
        self._waiting: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many messages may still be read in time."""
        return len(self._waiting)

    def start(self) -> None:
        """Sit down for everybody who wants to be woken."""
        self._seats.on_heard = self.heard
        for person in self._people:
            self._seats.keep(person.account)
        if self._people:
            self._task = asyncio.create_task(self._stay())

    async def stop(self) -> None:
        """Wake nobody any longer."""
        tasks = [*self._waiting, *([self._task] if self._task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _stay(self) -> None:
        while True:
            for person in self._people:
                try:
                    await self._seats.of(person)
                except NotSent as refused:
                    log.warning("nothing can be pushed to %s: %s", person.account, refused.reason)
            await asyncio.sleep(_AGAIN)

    def heard(self, seat: WebConnection, message: Message) -> None:
        """Something was said where they are."""
        account = fold(seat.person.account)
        if account not in self._addresses or not is_for(message, seat.irc.nick) or len(self._waiting) >= _WAITING:
            return
        task = asyncio.create_task(self._later(seat, message))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _later(self, seat: WebConnection, message: Message) -> None:
        await asyncio.sleep(self._delay)
        talk = seat.talks.known(message.channel)
        if talk is not None and talk.read_to is not None and talk.read_to >= message.timestamp:
            return
        if await _is_away(seat):
            return
        account = fold(seat.person.account)
        if not self._may(account):
            self._left_out[account] = self._left_out.get(account, 0) + 1
            return
        try:
            await self._post(self._addresses[account], self._made(message, self._left_out.pop(account, 0)))
        except NotPushed as failure:
            log.warning("nothing could be pushed to %s: %s", seat.person.account, failure)

    def _may(self, account: str) -> bool:
        now, pushed = asyncio.get_running_loop().time(), self._pushed.setdefault(account, deque())
        while pushed and pushed[0] <= now - self._period:
            pushed.popleft()
        if len(pushed) >= self._burst:
            return False
        pushed.append(now)
        return True

    def _made(self, message: Message, more: int) -> Push:
        where = "" if message.private else f" in {message.channel}"
        text = clean(message.text, Profile.WEB)[:_LONGEST] + (f"\n(and {more} more before)" if more else "")
        link = f"{self._url}{room_path(message.channel)}"
        return Push(f"{clean(message.sender, Profile.WEB)}{clean(where, Profile.WEB)}", text, link)


async def _is_away(seat: WebConnection) -> bool:
    """Whoever has said that they are away is left alone."""
    with suppress(NotSent):
        return any(member.away for member in await seat.irc.send_who(seat.irc.nick))
    return False
