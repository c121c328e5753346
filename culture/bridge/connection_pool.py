"""The connections of those who speak through a bridge: opened on first use, few, closed when idle."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, MutableSet
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass
from culture.transport import Address, ClientIdentity, Hopeless, IRCTransport, NotSent

log = logging.getLogger(__name__)

MOST = 32
IDLE = 1800.0
_OPENING = 20.0
_REMEMBERED = 512

SecretOf = Callable[[str], str | None]


@dataclass(eq=False, slots=True)
class BridgeConnection:
    """One nick's connection."""

    irc: IRCTransport
    channels: tuple[str, ...]
    """Where it is from the beginning."""
    used_at: float = 0.0
    users: int = 0
    opened: bool = False
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class BridgeConnectionPool:
    """The seats by nick. ``agents`` learns the nicks: on servers without classes nobody else tells what they are."""

    def __init__(
        self,
        address: Address,
        secret_of: SecretOf,
        agents: MutableSet[str],
        password: str | None = None,
        *,
        most: int = MOST,
        idle: float = IDLE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = address
        self._secret_of = secret_of
        self._agents = agents
        self._password = password
        self._most = most
        self._idle = idle
        self._clock = clock
        self._seats: OrderedDict[str, BridgeConnection] = OrderedDict()
        self._left: OrderedDict[str, list[str]] = OrderedDict()
        """Where those were whose seats were closed."""

    @property
    def nicks(self) -> list[str]:
        """Who sits."""
        return [seat.irc.nick for seat in self._seats.values()]

    def has(self, nick: str) -> bool:
        """Whether this nick is on one of our connections."""
        return fold(nick) in self._seats

    @asynccontextmanager
    async def taken(self, nick: str, via: str, channels: Iterable[str], logs_in: bool) -> AsyncIterator[IRCTransport]:
        """The connection of a nick; it stays open for as long as this lasts, and a while longer."""
        lost = self._seats.get(fold(nick))
        if lost is not None and lost.opened and not lost.users and not lost.irc.connected:
            await self._drop(nick)
        seat = self._seats.get(fold(nick)) or await self._new(nick, via, channels, logs_in)
        seat.users += 1
        try:
            async with seat.turn:
                await self._ready(nick, seat)
            yield seat.irc
        finally:
            seat.users -= 1
            seat.used_at = self._clock()

    async def _ready(self, nick: str, seat: BridgeConnection) -> None:
        if not seat.opened:
            await self._open(nick, seat)
        if self._seats.get(fold(nick)) is not seat or not seat.irc.connected:
            raise NotSent(f"{nick} is not connected at the moment: try again")
        if fold(seat.irc.nick) != fold(nick):
            await self._drop(nick)
            raise NotSent(f"{nick} is somebody else, who is on line")
        self._seats.move_to_end(fold(nick))

    async def _new(self, nick: str, via: str, channels: Iterable[str], logs_in: bool) -> BridgeConnection:
        if len(self._seats) >= self._most:
            await self._drop(self._longest_unused())
        token = self._secret_of(nick) if logs_in else None
        identity = ClientIdentity(nick, nick if token else None, token or self._password, realname=f"{nick} via {via}")
        wanted = {fold(name): name for name in (*channels, *self._left.pop(fold(nick), ()))}
        # Somebody else may have come first while another seat was closed.
        irc = IRCTransport(self._address, identity, agents=self._agents)
        return self._seats.setdefault(fold(nick), BridgeConnection(irc, tuple(wanted.values())))

    async def _open(self, nick: str, seat: BridgeConnection) -> None:
        if self._seats.get(fold(nick)) is not seat:
            return
        try:
            async with asyncio.timeout(_OPENING):
                await seat.irc.start()
                await check_class(seat.irc)
                if fold(seat.irc.nick) == fold(nick):
                    self._agents.add(nick)
                    await come_in(seat.irc, seat.channels)
            seat.opened = True
            log.info("%s is on line", seat.irc.nick)
        except (Hopeless, TimeoutError) as error:
            raise NotSent(f"{nick} cannot be on line: {error or 'the server does not answer'}") from None
        finally:
            if not seat.opened:
                await self._drop(nick)

    def _longest_unused(self) -> str:
        for nick, seat in self._seats.items():
            if not seat.users:
                return nick
        raise NotSent("too many speak through this bridge at once")

    async def _drop(self, nick: str) -> None:
        seat = self._seats.pop(fold(nick), None)
        if seat is not None:
            self._left[fold(nick)] = seat.irc.channels
            if len(self._left) > _REMEMBERED:
                self._left.popitem(last=False)
            await seat.irc.stop("idle")
            log.info("%s has left", nick)

    async def close_idle(self) -> None:
        """Close what nobody has used for long."""
        before = self._clock() - self._idle
        for nick, seat in list(self._seats.items()):
            if seat.opened and not seat.users and seat.used_at <= before:
                await self._drop(nick)

    async def close(self) -> None:
        """Close all."""
        for nick in list(self._seats):
            await self._drop(nick)


async def check_class(irc: IRCTransport) -> None:
    """Nobody speaks as a person from here, not even with a person's password: then it is ``Hopeless``."""
    account = irc.identity.account or irc.view.account
    if account is None or not irc.is_ours:
        return
    if {member.kind for member in await irc.send_who(irc.nick)} != {UserClass.AGENT}:
        await irc.request("MODE", irc.nick, "-B")  # on their other devices they are who they were
        raise Hopeless(f"the account {account} is not of class agent")


async def come_in(irc: IRCTransport, channels: Iterable[str]) -> None:
    """Join the first channels, once it is known who it is that joins."""
    for name in channels:
        try:
            await irc.join_channel(name)
        except NotSent as refused:
            log.warning("%s is not in %s: %s", irc.nick, name, refused.reason)
