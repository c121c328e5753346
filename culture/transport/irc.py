"""IRCTransport, the package's public interface: one identity on one server until stopped."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime

from culture.protocol.message import NO_TAGS
from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import Receipt
from culture.transport.catchup import HistoryUnavailable, catch_up
from culture.transport.channels import JoinedChannels, with_hint
from culture.transport.dedup import Delivery
from culture.transport.history import by_id, by_time, fetch_messages, has_history, page_size, search
from culture.transport.outgoing import MessageSender, check_target
from culture.transport.profile import ClientProfile, get_metadata, set_metadata
from culture.transport.reconnect import Reconnector, Setup
from culture.transport.requests import lines_of, refusal
from culture.transport.session import IrcSession
from culture.transport.types import (
    Address,
    ChannelMember,
    ClientIdentity,
    Message,
    NoHistory,
    NotSent,
    OnArrival,
    OnInvite,
    OnLine,
    OnMessage,
    OnOutside,
    OnProgress,
    OnReceipt,
    OnState,
    ReceiveCursor,
    ReceiveMark,
    Timing,
    call_safely,
)
from culture.transport.view import NetworkView
from culture.transport.who import query_who, refresh_members

log = logging.getLogger(__name__)


class _Listener:
    """Passes the events of a session to deduplication, channel list and callbacks."""

    def __init__(
        self, delivery: Delivery, channels: JoinedChannels, on_invite: OnInvite | None, on_receipt: OnReceipt | None
    ) -> None:
        self._delivery = delivery
        self.message_arrived = delivery.take_live
        self.joined = channels.joined
        self.parted = channels.parted
        self.renamed = channels.renamed
        self._channels = channels
        self._on_invite = on_invite
        self._on_receipt = on_receipt
        self.on_progress: OnProgress | None = None
        self.on_arrival: OnArrival | None = None
        self.on_line: OnLine | None = None

    def begun(self, session: IrcSession) -> None:
        if has_history(session):
            self._delivery.hold()
        if self.on_line is not None:
            session.watchers.append(self._line)

    def _line(self, line: Line) -> None:
        call_safely(self.on_line, line)

    def kicked(self, channel: str, reason: str) -> None:
        self._channels.parted(channel)
        self._channels.report_outside(channel, reason)

    def arrived(self, channel: str, nick: str) -> None:
        call_safely(self.on_arrival, channel, nick)

    def invited(self, channel: str, by: ChannelMember | None) -> None:
        call_safely(self._on_invite, channel, by)

    def received(self, msgid: str, receipt: Receipt) -> None:
        call_safely(self._on_receipt, msgid, receipt)

    def progressed(self, msgid: str, receipt: Receipt, by: str) -> None:
        call_safely(self.on_progress, msgid, receipt, by)


class IRCTransport:
    """One identity on one server. Callbacks come in the order of events and must not block."""

    def __init__(
        self,
        address: Address,
        identity: ClientIdentity,
        channels: Iterable[str] = (),
        *,
        cursor: ReceiveCursor | None = None,
        on_message: OnMessage | None = None,
        on_state: OnState | None = None,
        on_invite: OnInvite | None = None,
        on_arrival: OnArrival | None = None,
        on_receipt: OnReceipt | None = None,
        on_progress: OnProgress | None = None,
        on_outside: OnOutside | None = None,
        on_line: OnLine | None = None,
        agents: Collection[str] = (),
        people: Collection[str] = (),
        timing: Timing | None = None,
        patient: bool = True,
    ) -> None:
        """Prepare a connection; ``start`` opens it.

        Without ``patient`` the first connection is tried once; ``ServerUnreachable`` is raised if it fails.
        ``agents`` and ``people`` are nicks: they tell what users are on a server without user classes.
        """
        self.address = address
        self.identity = identity
        self._cursor = cursor
        self._timing = timing or Timing()
        self._delivery = Delivery(on_message, cursor)
        self._joined = JoinedChannels(channels, on_outside)
        listener = _Listener(self._delivery, self._joined, on_invite, on_receipt)
        listener.on_progress, listener.on_arrival = on_progress, on_arrival
        listener.on_line = on_line
        setup = Setup(address, identity, self._timing, agents, people, patient)

        self._profile = ClientProfile(identity.bot)
        self._reconnector = Reconnector(setup, listener, self._settle, self._retry_catch_up, on_state)
        self._missed_since: ReceiveMark | None = None
        self._sender = MessageSender(self._delivery)

    # Connection

    async def start(self) -> None:
        """Connect; returns once in the channels. Raises ``Hopeless`` if trying again would not help."""
        await self._reconnector.start()

    async def stop(self, reason: str = "") -> None:
        """Leave the server and end all background work."""
        await self._reconnector.stop(reason)

    async def restart(self, identity: ClientIdentity | None = None) -> None:
        """Stop and start again, with another identity if passed; raises what ``start`` raises."""
        await self._reconnector.stop("")
        if identity is not None:
            self.identity = identity
            self._reconnector.set_identity(identity)
        await self._reconnector.start()

    @property
    def connected(self) -> bool:
        """Whether a registered connection exists."""
        return self._reconnector.session is not None

    @property
    def settled(self) -> bool:
        """Whether the channels are joined and the catch-up is done, as far as the server allows it."""
        return self._reconnector.session is not None and self._reconnector.session.settled

    @property
    def nick(self) -> str:
        """Our nick on the server."""
        return self._reconnector.view.nick

    @property
    def is_ours(self) -> bool:
        """Whether the server is one of ours, which tells the class of every user."""
        return self._reconnector.session is not None and self._reconnector.session.is_ours

    @property
    def view(self) -> NetworkView:
        """Channels and users as of this connection or the last one."""
        return self._reconnector.view

    @property
    def mark(self) -> ReceiveMark | None:
        """The mark of the last message received; before the first message, the time of connecting."""
        # While a catch-up is pending, newer messages were received but older ones are missing.
        return self._missed_since or self._delivery.mark

    @property
    def is_behind(self) -> bool:
        """Whether missed messages are still pending while live ones are already delivered."""
        return self._missed_since is not None

    @property
    def channels(self) -> list[str]:
        """Channels we are in; while disconnected, those that will be rejoined."""
        return self.view.channels if self.connected else self._joined.wanted

    def members(self, channel: str) -> list[ChannelMember]:
        """Return the members of a channel that we are in."""
        return self.view.members(channel)

    async def _settle(self, session: IrcSession) -> None:
        await session.barrier()
        await self._profile.publish_all(session)
        await self._joined.join_all(session)
        await refresh_members(session, session.view.channels)
        since = self._missed_since or (self._cursor.load() if self._cursor is not None else None) or self.mark
        try:
            await catch_up(session, self._delivery, since)
            since = None
        except HistoryUnavailable as error:
            log.error("%s: the server cannot read its history yet: %s", session.view.nick, error)
        self._missed_since = since
        self._delivery.release()
        self._delivery.begin_at(session.server_time or datetime.now(UTC))

    async def _retry_catch_up(self, session: IrcSession) -> None:
        """Repeat a catch-up that failed, until the server can read its history."""
        while self._missed_since is not None:
            await asyncio.sleep(self._timing.regain)
            try:
                await catch_up(session, self._delivery, self._missed_since)
                self._missed_since = None
            except HistoryUnavailable:
                continue

    def _session(self) -> IrcSession:
        if self._reconnector.session is None:
            raise NotSent("not connected")
        return self._reconnector.session

    # Messages

    async def send_privmsg(
        self, target: str, text: str, tags: Mapping[str, str] = NO_TAGS, *, skip: int = 0
    ) -> list[str]:
        """Send a message of any length; returns its msgids. ``NotSent`` has the server's reason.

        A long text may become several messages; the first ``skip`` of them are left out as sent before.
        """
        return await self._sender.send(self._session(), "PRIVMSG", target, text, tags, skip)

    async def send_notice(
        self, target: str, text: str, tags: Mapping[str, str] = NO_TAGS, *, skip: int = 0
    ) -> list[str]:
        """Send a notice, which nobody answers automatically; like ``send_privmsg``."""
        return await self._sender.send(self._session(), "NOTICE", target, text, tags, skip)

    async def request(self, verb: str, *params: str, tags: Mapping[str, str] = NO_TAGS) -> list[Line]:
        """Send any other command; returns the lines of its answer, refusals included."""
        return list(lines_of(await self._session().ask(Line(verb, params, tags=tags))))

    # Channels and users

    async def join_channel(self, name: str, key: str = "") -> None:
        """Join a channel, and rejoin it after reconnects. ``NotSent`` has the server's reason."""
        session = self._session()
        await self._joined.join(session, name, key)
        await refresh_members(session, [name])

    async def part_channel(self, name: str, reason: str = "") -> None:
        """Leave a channel; it is not rejoined."""
        session = self._session()
        check_target(name)
        refused = refusal(await session.ask(Line("PART", (name, reason) if reason else (name,))))
        self._joined.parted(name)
        if refused is not None:
            raise NotSent(with_hint(refused.reason, name, session.view.channels), refused.code)

    async def send_who(self, target: str) -> list[ChannelMember]:
        """Query the members of a channel, or one user by nick, from the server."""
        return await query_who(self._session(), target)

    async def set_metadata(self, key: str, value: str | None, target: str = "*") -> bool:
        """Set or remove a metadata value; False if the server does not support metadata.

        Our own values are published again after every reconnect, and can be set while disconnected.
        """
        if target == "*" or self.view.is_self(target):
            return await self._profile.publish(self._reconnector.session, key, value)
        return await set_metadata(self._session(), target, key, value)

    async def get_metadata(self, target: str, *keys: str) -> dict[str, str]:
        """Return metadata of a user or channel: these keys, or all."""
        return await get_metadata(self._session(), target, keys)

    async def set_away(self, text: str = "") -> None:
        """Set the away message, or clear it with an empty text; it survives reconnects."""
        await self._profile.set_away(self._reconnector.session, text)

    async def history(
        self,
        channel: str,
        after: str | None = None,
        before: str | None = None,
        limit: int = 50,
        *,
        around: str | None = None,
    ) -> list[Message]:
        """Return messages of a channel or user, between two ids or around one, oldest first.

        Raises ``NoHistory`` if the server has none.
        """
        since, until, middle = (None if each is None else by_id(each) for each in (after, before, around))
        return await fetch_messages(self._session(), channel, since, until, limit, middle)

    async def search(self, channel: str, text: str, by_meaning: bool = False) -> list[Message]:
        """Search a channel: messages with all words, oldest first; or by meaning, best match first.

        Raises ``NotSent`` with the server's reason if it has no such search.
        """
        return await search(self._session(), channel, text, by_meaning)

    # The Transport protocol

    async def send(self, channel: str, message: str, sender: str = "") -> None:
        """Send a message; the sender must be the user of this connection."""
        if sender and not self.view.is_self(sender):
            raise NotSent(f"{sender} is not on this connection, {self.nick} is")
        await self.send_privmsg(channel, message)

    async def read(self, channel: str, since: datetime | None = None) -> list[Message]:
        """Return messages since a time, oldest first: from the history, else those received here."""
        session = self._reconnector.session
        try:
            if session is None:
                raise NoHistory("not connected")
            limit = page_size(session)
            return await fetch_messages(session, channel, None if since is None else by_time(since), None, limit)
        except NoHistory:
            messages = self._delivery.recent(channel)
            return [message for message in messages if since is None or message.timestamp > since]

    async def create_channel(self, name: str) -> None:
        """Create a channel by joining it."""
        await self.join_channel(name)

    async def list_channels(self) -> list[str]:
        """Return the names of the server's channels."""
        return [line.params[1] for line in await self.request("LIST") if line.verb == "322" and len(line.params) > 1]

    async def get_members(self, channel: str) -> list[str]:
        """Return the nicks of a channel's members."""
        return [member.nick for member in await self.send_who(channel)]
