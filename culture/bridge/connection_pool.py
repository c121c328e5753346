"""A bridge's IRC connections, one per nick: opened on first use, limited, closed when idle."""

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
_OPEN_TIMEOUT = 20.0
_MAX_REMEMBERED = 512

SecretOf = Callable[[str], str | None]


@dataclass(eq=False, slots=True)
class BridgeConnection:
    """The IRC connection of one nick in the pool, with the number of tool calls that use it now."""

    irc: IRCTransport
    channels: tuple[str, ...]
    """Channels to join at the start."""
    used_at: float = 0.0
    users: int = 0
    opened: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class BridgeConnectionPool:
    """The IRC connections of a bridge by nick, at most ``most``, each closed after idle time.

    Their nicks are added to the set ``agents``, so that they count as agents also on IRC servers that have no user
    classes.
    """

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
        self._entries: OrderedDict[str, BridgeConnection] = OrderedDict()
        self._last_channels: OrderedDict[str, list[str]] = OrderedDict()
        """Channels of closed connections, by nick."""

    @property
    def nicks(self) -> list[str]:
        """Nicks of all connections in the pool."""
        return [entry.irc.nick for entry in self._entries.values()]

    def has(self, nick: str) -> bool:
        """Whether the pool has a connection for this nick."""
        return fold(nick) in self._entries

    @asynccontextmanager
    async def connection(
        self, nick: str, via: str, channels: Iterable[str], logs_in: bool
    ) -> AsyncIterator[IRCTransport]:
        """Yield the IRC connection of a nick, opened if needed; it stays open during the block.

        ``via``: nick of the bridge, shown in the real name. ``channels``: those to join after connecting. ``logs_in``:
        whether to log in to the nick's account with its stored token. ``NotSent`` is raised if the connection cannot be
        opened.
        """
        current = self._entries.get(fold(nick))
        if current is not None and current.opened and not current.users and not current.irc.connected:
            await self._drop(nick)
        entry = self._entries.get(fold(nick)) or await self._new(nick, via, channels, logs_in)
        entry.users += 1
        try:
            async with entry.lock:
                await self._ensure_ready(nick, entry)
            yield entry.irc
        finally:
            entry.users -= 1
            entry.used_at = self._clock()

    async def _ensure_ready(self, nick: str, entry: BridgeConnection) -> None:
        if not entry.opened:
            await self._open(nick, entry)
        if self._entries.get(fold(nick)) is not entry or not entry.irc.connected:
            raise NotSent(f"{nick} is not connected at the moment: try again")
        if fold(entry.irc.nick) != fold(nick):
            await self._drop(nick)
            raise NotSent(f"{nick} is somebody else, who is on line")
        self._entries.move_to_end(fold(nick))

    async def _new(self, nick: str, via: str, channels: Iterable[str], logs_in: bool) -> BridgeConnection:
        if len(self._entries) >= self._most:
            await self._drop(self._longest_unused())
        token = self._secret_of(nick) if logs_in else None
        identity = ClientIdentity(nick, nick if token else None, token or self._password, realname=f"{nick} via {via}")
        first_channels = {fold(name): name for name in (*channels, *self._last_channels.pop(fold(nick), ()))}
        # Another call may have added this nick while an old connection was closed.
        irc = IRCTransport(self._address, identity, agents=self._agents)
        return self._entries.setdefault(fold(nick), BridgeConnection(irc, tuple(first_channels.values())))

    async def _open(self, nick: str, entry: BridgeConnection) -> None:
        if self._entries.get(fold(nick)) is not entry:
            return
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT):
                await entry.irc.start()
                await check_class(entry.irc)
                if fold(entry.irc.nick) == fold(nick):
                    self._agents.add(nick)
                    await join_channels(entry.irc, entry.channels)
            entry.opened = True
            log.info("%s is on line", entry.irc.nick)
        except (Hopeless, TimeoutError) as error:
            raise NotSent(f"{nick} cannot be on line: {error or 'the server does not answer'}") from None
        finally:
            if not entry.opened:
                await self._drop(nick)

    def _longest_unused(self) -> str:
        for nick, entry in self._entries.items():
            if not entry.users:
                return nick
        raise NotSent("too many speak through this bridge at once")

    async def _drop(self, nick: str) -> None:
        entry = self._entries.pop(fold(nick), None)
        if entry is not None:
            self._last_channels[fold(nick)] = entry.irc.channels
            if len(self._last_channels) > _MAX_REMEMBERED:
                self._last_channels.popitem(last=False)
            await entry.irc.stop("idle")
            log.info("%s has left", nick)

    async def close_idle(self) -> None:
        """Close the connections that no tool call has used for the idle time of the pool."""
        before = self._clock() - self._idle
        for nick, entry in list(self._entries.items()):
            if entry.opened and not entry.users and entry.used_at <= before:
                await self._drop(nick)

    async def close(self) -> None:
        """Close all connections of the pool."""
        for nick in list(self._entries):
            await self._drop(nick)


async def check_class(irc: IRCTransport) -> None:
    """Raise ``Hopeless`` if a connection is logged in to an account that is not of class agent.

    The programs behind a bridge may not act as people.
    """
    account = irc.identity.account or irc.view.account
    if account is None or not irc.is_ours:
        return
    if {member.kind for member in await irc.send_who(irc.nick)} != {UserClass.AGENT}:
        await irc.request("MODE", irc.nick, "-B")  # or the person's other connections would count as a bot
        raise Hopeless(f"the account {account} is not of class agent")


async def join_channels(irc: IRCTransport, channels: Iterable[str]) -> None:
    """Join channels; for each that cannot be joined, log the reason and continue with the next."""
    for name in channels:
        try:
            await irc.join_channel(name)
        except NotSent as refused:
            log.warning("%s is not in %s: %s", irc.nick, name, refused.reason)
