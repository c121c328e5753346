"""The bridge on IRC: its own connection, the seats of those who speak through it, and who may do what."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

from culture.bridge.callers import Caller
from culture.bridge.connection_pool import BridgeConnectionPool, SecretOf, check_class, come_in
from culture.bridge.settings import BridgeSettings
from culture.bridge.tool_answers import LONGEST
from culture.protocol.names import fold, reserved, short_name, valid_channel, valid_nick
from culture.protocol.text import Profile, clean
from culture.transport import ChannelMember, ClientIdentity, ConnectionState, Hopeless, IRCTransport, Message, NotSent

log = logging.getLogger(__name__)

MOST = 200
"""Messages in one answer."""
_LOOK = 15.0
_AGAIN = 1.0
_REFUSED = 60.0
"""Seconds until a login that was refused is tried again."""
_COMING = 4.0
"""How long a call waits for a server that is not there."""
_CHANNEL_BYTES = 200


class BridgeClient:
    """What the tools do. ``NotSent`` says why something is not done."""

    def __init__(
        self,
        settings: BridgeSettings,
        secret_of: SecretOf,
        seats: BridgeConnectionPool | None = None,
        *,
        pause: float = _REFUSED,
    ) -> None:
        agents = {settings.irc_nick}
        self._settings = settings
        self._secret_of = secret_of
        self._pause = pause
        self._given_up = asyncio.Event()
        self.irc = IRCTransport(settings.address, self._identity_now(), agents=agents, on_state=self._changed)
        self._channels = settings.irc_channels
        self._has_come = False
        self._settled = asyncio.Event()
        self.seats = seats or BridgeConnectionPool(settings.address, secret_of, agents, settings.irc_password)
        self._problem = "the bridge is not connected to the IRC server"

    def _identity_now(self) -> ClientIdentity:
        """The bridge's own, with the token that it has by now."""
        nick = self._settings.irc_nick
        token = self._settings.irc_token or self._secret_of(nick)
        return ClientIdentity(
            nick, nick if token else None, token or self._settings.irc_password, realname="MCP bridge"
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Be on IRC; a server that is not there yet is waited for meanwhile."""
        coming, sweeping = asyncio.create_task(self._come()), asyncio.create_task(self._sweep())
        try:
            yield
        finally:
            for task in (coming, sweeping):
                task.cancel()
            await asyncio.wait({coming, sweeping})
            await self.seats.close()
            await self.irc.stop("the bridge stops")

    async def _come(self) -> None:
        """Be on IRC, and come again after a refusal: an account that is made anew lets the bridge in."""
        start = self.irc.start
        while True:
            try:
                self._given_up.clear()
                await start()
                while not self._has_come:
                    await self._arrive()
                self._settled.set()
                await self._given_up.wait()
            except Hopeless as error:
                self._problem = f"the bridge cannot be on IRC: {error}"
                log.error("%s; next try in %g s", self._problem, self._pause)
                await self.irc.stop()
                self._settled.set()
            await asyncio.sleep(self._pause)
            start = self._restart

    async def _restart(self) -> None:
        self._has_come = False
        await self.irc.restart(self._identity_now())

    async def _arrive(self) -> None:
        try:
            await check_class(self.irc)
            await come_in(self.irc, self._channels)
            self._has_come = True
            log.info("the bridge is on line as %s", self.irc.nick)
        except NotSent as lost:
            log.warning("the bridge was cut off while it came: %s", lost.reason)
            await asyncio.sleep(_AGAIN)

    def _changed(self, condition: ConnectionState, reason: str) -> None:
        if condition in (ConnectionState.LOST, ConnectionState.HOPELESS):
            self._problem = f"the bridge is not connected to the IRC server: {reason}"
            self._settled.clear()
            if condition is ConnectionState.HOPELESS:
                self._given_up.set()
        elif condition is ConnectionState.CONNECTED and self._has_come:
            self._settled.set()
            log.info("the bridge is on line again")

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            await self.seats.close_idle()

    # What the tools do

    async def say(self, caller: Caller, sender: str | None, channel: str, text: str) -> None:
        """Say something in a channel, as the sender."""
        _check_channel(channel)
        if len(text.encode(errors="replace")) > LONGEST:
            raise NotSent(f"the text is longer than {LONGEST} bytes: say it in parts, or put it into a file")
        words = clean(text, Profile.WEB)
        if not words.strip():
            raise NotSent("there is nothing to say")
        async with self._speaking(caller, sender) as irc:
            await _come_into(irc, channel)
            if not caller.is_known and irc is not self.irc:
                with suppress(NotSent):  # so that it can be read here too, where the server lets us in
                    await _come_into(self.irc, channel)
            await irc.send(channel, words, irc.nick)

    async def read(
        self, caller: Caller, sender: str | None, channel: str, since: datetime | None, limit: int
    ) -> list[Message]:
        """What was said in a channel, the newest first."""
        _check_channel(channel)
        if since is not None and since.tzinfo is None:
            since = since.replace(tzinfo=UTC)
        async with self._reading(caller, sender) as irc:
            await self._inside(caller, irc, channel)
            # Where there is no history to ask, the bridge has perhaps been there for longer.
            has_heard = not irc.is_ours and self.irc.view.channel(channel) is not None
            return await _newest(self.irc if has_heard else irc, channel, since, max(1, min(limit, MOST)))

    async def create(self, caller: Caller, sender: str | None, channel: str) -> None:
        """Make a channel, or come into one that is there."""
        _check_channel(channel)
        async with self._reading(caller, sender) as irc:
            await irc.create_channel(channel)

    async def channels(self, caller: Caller, sender: str | None) -> list[str]:
        """The channels that the caller can see."""
        async with self._reading(caller, sender) as irc:
            return sorted(clean(name, Profile.MODEL) for name in await irc.list_channels())

    async def members(self, caller: Caller, sender: str | None, channel: str) -> list[ChannelMember]:
        """Who is in a channel."""
        _check_channel(channel)
        async with self._reading(caller, sender) as irc:
            await self._inside(caller, irc, channel)
            return await irc.send_who(channel)

    # Who does it

    @asynccontextmanager
    async def _speaking(self, caller: Caller, sender: str | None) -> AsyncIterator[IRCTransport]:
        nick = await self._identity(caller, sender)
        if nick is None:
            yield self.irc
            return
        logs_in = caller.is_known and self._secret_of(nick) is not None
        if not (logs_in or self.seats.has(nick)) and await self.irc.send_who(nick):
            raise NotSent(f"{nick} is somebody else, who is on line")
        async with self.seats.taken(nick, self.irc.nick, caller.channels, logs_in) as irc:
            yield irc

    @asynccontextmanager
    async def _reading(self, caller: Caller, sender: str | None) -> AsyncIterator[IRCTransport]:
        """Whoever has a token sees what their nick sees; everybody else, what the bridge sees."""
        if caller.is_known:
            async with self._speaking(caller, sender) as irc:
                yield irc
        else:
            await self._identity(caller, sender)
            yield self.irc

    async def _identity(self, caller: Caller, sender: str | None) -> str | None:
        """The nick under which the caller acts; None for the bridge's own."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_COMING):
                await self._settled.wait()
        if not self.irc.connected:
            raise NotSent(self._problem)
        if sender is not None and (not valid_nick(sender) or reserved(sender)):
            raise NotSent(f"{clean(sender[:64], Profile.MODEL)!r} is not a nick that one can have")
        own = self.irc.nick
        if caller.is_known:
            names = {fold(name): name for name in map(self._full, caller.names)}
            wanted = fold(self._full(sender or caller.names[0]))
            if wanted not in names or wanted == fold(own):
                raise NotSent(f"this token does not speak for {sender or caller.names[0]}")
            return names[wanted]
        nick = own if sender is None else self._full(sender)
        return None if fold(nick) == fold(own) else nick

    def _full(self, name: str) -> str:
        """The nick with the prefix that this server demands."""
        prefix = f"{short_name(self.irc.view.server)}-"
        is_demanded = len(prefix) > 1 and fold(self.irc.nick).startswith(fold(prefix))
        return prefix + name if is_demanded and not fold(name).startswith(fold(prefix)) else name

    async def _inside(self, caller: Caller, irc: IRCTransport, channel: str) -> None:
        if irc.view.channel(channel) is not None:
            return
        if caller.is_known:
            raise NotSent(f"{irc.nick} is not in {channel}: create_channel comes into it, if the server allows")
        await _come_into(irc, channel)


def _check_channel(name: str) -> None:
    if not valid_channel(name, _CHANNEL_BYTES):
        raise NotSent(f"{clean(name[:64], Profile.MODEL)!r} is not a channel: its name begins with #")


async def _come_into(irc: IRCTransport, channel: str) -> None:
    """Join a channel that is there: a name misspelt must not make a new one."""
    if irc.view.channel(channel) is not None:
        return
    found = [line.params[1] for line in await irc.request("LIST", channel) if line.verb == "322"]
    if fold(channel) not in map(fold, found):  # `#*` finds others
        raise NotSent(f"there is no channel {channel} that {irc.nick} can see: create_channel makes it")
    await irc.join_channel(channel)


async def _newest(irc: IRCTransport, channel: str, since: datetime | None, limit: int) -> list[Message]:
    if not irc.is_ours:
        await irc.request("PING", "bridge")  # what was said before this is heard by then
    page = await irc.read(channel)
    found = page[::-1]
    # What was only heard here is all there is.
    while page and page[0].missed and len(found) < limit and (since is None or page[0].timestamp > since):
        page = await irc.history(channel, before=page[0].msgid)
        found += page[::-1]
    return [message for message in found if since is None or message.timestamp > since][:limit]
