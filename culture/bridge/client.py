"""The bridge on IRC: its own connection, those of its callers, and who may act as whom."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

from culture.bridge.callers import Caller
from culture.bridge.connection_pool import BridgeConnectionPool, SecretOf, check_class, join_channels
from culture.bridge.settings import BridgeSettings
from culture.bridge.tool_answers import LONGEST
from culture.protocol.names import fold, reserved, short_name, valid_channel, valid_nick
from culture.protocol.text import Profile, clean
from culture.transport import ChannelMember, ClientIdentity, ConnectionState, Hopeless, IRCTransport, Message, NotSent

log = logging.getLogger(__name__)

MOST = 200
"""Limit of messages in one answer."""
_SWEEP_INTERVAL = 15.0
_RETRY = 1.0
_REFUSED = 60.0
"""Seconds until a refused login is tried again."""
_CONNECT_WAIT = 4.0
"""Seconds that a call waits while the bridge is not connected."""
_CHANNEL_BYTES = 200


class BridgeClient:
    """Executes the bridge's five tools on IRC; raises ``NotSent`` with the reason if one fails."""

    def __init__(
        self,
        settings: BridgeSettings,
        secret_of: SecretOf,
        pool: BridgeConnectionPool | None = None,
        *,
        pause: float = _REFUSED,
    ) -> None:
        agents = {settings.irc_nick}
        self._settings = settings
        self._secret_of = secret_of
        self._pause = pause
        self._given_up = asyncio.Event()
        self.irc = IRCTransport(settings.address, self._current_identity(), agents=agents, on_state=self._on_state)
        self._channels = settings.irc_channels
        self._has_joined = False
        self._settled = asyncio.Event()
        self.pool = pool or BridgeConnectionPool(settings.address, secret_of, agents, settings.irc_password)
        self._problem = "the bridge is not connected to the IRC server"

    def _current_identity(self) -> ClientIdentity:
        """Return nick, account and token for the bridge's IRC login; the token as it is stored now."""
        nick = self._settings.irc_nick
        token = self._settings.irc_token or self._secret_of(nick)
        return ClientIdentity(
            nick, nick if token else None, token or self._settings.irc_password, realname="MCP bridge"
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the bridge connected to IRC during the block, which begins before it is connected."""
        tasks = {asyncio.create_task(self._stay_connected()), asyncio.create_task(self._sweep())}
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await self.pool.close()
            await self.irc.stop("the bridge stops")

    async def _stay_connected(self) -> None:
        """Keep the bridge connected to IRC and in its channels, until cancelled.

        After a refused login it tries again after a pause, since the account may be created later.
        """
        start = self.irc.start
        while True:
            try:
                self._given_up.clear()
                await start()
                while not self._has_joined:
                    await self._join()
                self._settled.set()
                await self._given_up.wait()
            except Hopeless as error:
                self._problem = f"the bridge cannot be on IRC: {error}"
                log.error("%s; next attempt in %g s", self._problem, self._pause)
                await self.irc.stop()
                self._settled.set()
            await asyncio.sleep(self._pause)
            start = self._restart

    async def _restart(self) -> None:
        self._has_joined = False
        await self.irc.restart(self._current_identity())

    async def _join(self) -> None:
        try:
            await check_class(self.irc)
            await join_channels(self.irc, self._channels)
            self._has_joined = True
            log.info("the bridge is on line as %s", self.irc.nick)
        except NotSent as lost:
            log.warning("the bridge was disconnected while it joined its channels: %s", lost.reason)
            await asyncio.sleep(_RETRY)

    def _on_state(self, condition: ConnectionState, reason: str) -> None:
        if condition in (ConnectionState.LOST, ConnectionState.HOPELESS):
            self._problem = f"the bridge is not connected to the IRC server: {reason}"
            self._settled.clear()
            if condition is ConnectionState.HOPELESS:
                self._given_up.set()
        elif condition is ConnectionState.CONNECTED and self._has_joined:
            self._settled.set()
            log.info("the bridge is on line again")

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_INTERVAL)
            await self.pool.close_idle()

    # The tools

    async def say(self, caller: Caller, sender: str | None, channel: str, text: str) -> None:
        """Send a text to an existing channel; raise ``NotSent`` if that is refused.

        ``sender``: the nick to send as. None: the first nick of the caller's token, or the bridge's nick for a caller
        without token.
        """
        _check_channel(channel)
        if len(text.encode(errors="replace")) > LONGEST:
            raise NotSent(f"the text is longer than {LONGEST} bytes: say it in parts, or put it into a file")
        words = clean(text, Profile.WEB)
        if not words.strip():
            raise NotSent("there is nothing to say")
        async with self._connection_to_write(caller, sender) as irc:
            await _join_existing(irc, channel)
            if not caller.is_known and irc is not self.irc:
                with suppress(NotSent):  # so that the bridge can read the channel later, if it may join
                    await _join_existing(self.irc, channel)
            await irc.send(channel, words, irc.nick)

    async def read(
        self, caller: Caller, sender: str | None, channel: str, since: datetime | None, limit: int
    ) -> list[Message]:
        """Return at most ``limit`` messages of a channel, newest first.

        ``since``: only those after this time, None for all. ``sender``: the nick to read as, None for the caller's
        first nick. A caller without token reads as the bridge.
        """
        _check_channel(channel)
        if since is not None and since.tzinfo is None:
            since = since.replace(tzinfo=UTC)
        async with self._connection_to_read(caller, sender) as irc:
            await self._ensure_joined(caller, irc, channel)
            # Without history on the server, the bridge itself may have been in the channel for longer.
            has_more = not irc.is_ours and self.irc.view.channel(channel) is not None
            return await _newest(self.irc if has_more else irc, channel, since, max(1, min(limit, MOST)))

    async def create(self, caller: Caller, sender: str | None, channel: str) -> None:
        """Create a channel by joining it; an existing one is joined only.

        ``sender``: the nick that joins, None for the caller's first nick. For a caller without token the bridge joins.
        """
        _check_channel(channel)
        async with self._connection_to_read(caller, sender) as irc:
            await irc.create_channel(channel)

    async def channels(self, caller: Caller, sender: str | None) -> list[str]:
        """Return the sorted names of the channels that the server lists for the caller.

        ``sender``: the nick to ask as, None for the caller's first nick. For a caller without token the bridge asks.
        """
        async with self._connection_to_read(caller, sender) as irc:
            return sorted(clean(name, Profile.MODEL) for name in await irc.list_channels())

    async def members(self, caller: Caller, sender: str | None, channel: str) -> list[ChannelMember]:
        """Return the members of a channel that the caller is in.

        ``sender``: the nick to ask as, None for the caller's first nick. For a caller without token the bridge asks,
        and joins the channel first.
        """
        _check_channel(channel)
        async with self._connection_to_read(caller, sender) as irc:
            await self._ensure_joined(caller, irc, channel)
            return await irc.send_who(channel)

    # The caller's connection

    @asynccontextmanager
    async def _connection_to_write(self, caller: Caller, sender: str | None) -> AsyncIterator[IRCTransport]:
        nick = await self._identity(caller, sender)
        if nick is None:
            yield self.irc
            return
        logs_in = caller.is_known and self._secret_of(nick) is not None
        if not (logs_in or self.pool.has(nick)) and await self.irc.send_who(nick):
            raise NotSent(f"{nick} is somebody else, who is on line")
        async with self.pool.connection(nick, self.irc.nick, caller.channels, logs_in) as irc:
            yield irc

    @asynccontextmanager
    async def _connection_to_read(self, caller: Caller, sender: str | None) -> AsyncIterator[IRCTransport]:
        """Yield the IRC connection to read with: of a caller with token its own, else the bridge's.

        ``sender``: the nick to act as, None for the caller's first nick.
        """
        if caller.is_known:
            async with self._connection_to_write(caller, sender) as irc:
                yield irc
        else:
            await self._identity(caller, sender)
            yield self.irc

    async def _identity(self, caller: Caller, sender: str | None) -> str | None:
        """Return the nick that a caller acts as; None if that is the bridge's own nick.

        ``sender``: the nick that the caller asked for, or None. ``NotSent`` is raised if the caller may not act as it,
        or if the bridge is not connected.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_CONNECT_WAIT):
                await self._settled.wait()
        if not self.irc.connected:
            raise NotSent(self._problem)
        if sender is not None and (not valid_nick(sender) or reserved(sender)):
            raise NotSent(f"{clean(sender[:64], Profile.MODEL)!r} is not a nick that one can have")
        own = self.irc.nick
        if caller.is_known:
            names = {fold(name): name for name in map(self._with_prefix, caller.names)}
            nick = fold(self._with_prefix(sender or caller.names[0]))
            if nick not in names or nick == fold(own):
                raise NotSent(f"this token does not speak for {sender or caller.names[0]}")
            return names[nick]
        nick = own if sender is None else self._with_prefix(sender)
        return None if fold(nick) == fold(own) else nick

    def _with_prefix(self, name: str) -> str:
        """Return a nick with the server's name before it (``name-nick``) if the server demands that."""
        prefix = f"{short_name(self.irc.view.server)}-"
        is_demanded = len(prefix) > 1 and fold(self.irc.nick).startswith(fold(prefix))
        return prefix + name if is_demanded and not fold(name).startswith(fold(prefix)) else name

    async def _ensure_joined(self, caller: Caller, irc: IRCTransport, channel: str) -> None:
        if irc.view.channel(channel) is not None:
            return
        if caller.is_known:
            raise NotSent(f"{irc.nick} is not in {channel}: create_channel comes into it, if the server allows")
        await _join_existing(irc, channel)


def _check_channel(name: str) -> None:
    if not valid_channel(name, _CHANNEL_BYTES):
        raise NotSent(f"{clean(name[:64], Profile.MODEL)!r} is not a channel: its name begins with #")


async def _join_existing(irc: IRCTransport, channel: str) -> None:
    """Join a channel if it exists; raise ``NotSent`` if not, since joining would create it."""
    if irc.view.channel(channel) is not None:
        return
    names = [line.params[1] for line in await irc.request("LIST", channel) if line.verb == "322"]
    if fold(channel) not in map(fold, names):  # `#*` matches other channels
        raise NotSent(f"there is no channel {channel} that {irc.nick} can see: create_channel makes it")
    await irc.join_channel(channel)


async def _newest(irc: IRCTransport, channel: str, since: datetime | None, limit: int) -> list[Message]:
    if not irc.is_ours:
        await irc.request("PING", "bridge")  # everything sent before it has arrived by its answer
    page = await irc.read(channel)
    messages = page[::-1]
    # Only messages from the history have older ones to fetch.
    while page and page[0].missed and len(messages) < limit and (since is None or page[0].timestamp > since):
        page = await irc.history(channel, before=page[0].msgid)
        messages += page[::-1]
    return [message for message in messages if since is None or message.timestamp > since][:limit]
