"""IRCTransport, the package's public interface: one identity on one server until stopped."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from culture.protocol.message import NO_TAGS
from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import Receipt
from culture.runtime import REAL, Runtime
from culture.transport.catchup import HistoryUnavailable, catch_up
from culture.transport.channels import JoinedChannels, with_hint
from culture.transport.dedup import Delivery
from culture.transport.history import by_id, by_time, fetch_messages, has_history, page_size, search
from culture.transport.message_sender import MessageSender, check_target
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
    """Passes the events of a session on: to deduplication, the channel list and the callbacks."""

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
    """One identity on one server, reconnected until it is stopped.

    Callbacks are called in the order of events and must not block.
    """

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
        runtime: Runtime = REAL,
    ) -> None:
        """Store address, identity and callbacks; ``start`` opens the connection.

        ``channels``: those to join at start. ``cursor``: remembers over restarts which messages were received.
        Without ``patient`` the first connection is tried only once, and ``start`` raises ``ServerUnreachable`` if it
        fails. ``agents`` and ``people`` are nicks that count as agents and people on a server that does not tell the
        class of its users.
        """
        self.address = address
        self.identity = identity
        self._cursor = cursor
        self._timing = timing or Timing()
        self._runtime = runtime
        self._delivery = Delivery(on_message, cursor)
        self._joined = JoinedChannels(channels, on_outside)
        listener = _Listener(self._delivery, self._joined, on_invite, on_receipt)
        listener.on_progress, listener.on_arrival = on_progress, on_arrival
        listener.on_line = on_line
        setup = Setup(address, identity, self._timing, agents, people, patient, runtime=runtime)

        self._profile = ClientProfile(identity.bot)
        self._reconnector = Reconnector(setup, listener, self._settle, self._retry_catch_up, on_state)
        self._missed_since: ReceiveMark | None = None
        self._sender = MessageSender(self._delivery)

    # Connection

    async def start(self) -> None:
        """Connect; return once the channels are joined. Raises ``Hopeless`` if retries are futile."""
        await self._reconnector.start()

    async def stop(self, reason: str = "") -> None:
        """Send QUIT with a reason, close the connection and end all background tasks."""
        await self._reconnector.stop(reason)

    async def restart(self, identity: ClientIdentity | None = None) -> None:
        """Disconnect and connect again, with ``identity`` if passed.

        Raises ``Hopeless`` if retries are futile.
        """
        await self._reconnector.stop("")
        if identity is not None:
            self.identity = identity
            self._reconnector.set_identity(identity)
        await self._reconnector.start()

    @property
    def connected(self) -> bool:
        """Whether there is a connection on which the registration is complete."""
        return self._reconnector.session is not None

    @property
    def settled(self) -> bool:
        """Whether the channels are joined and the catch-up was tried; a failed one is repeated."""
        return self._reconnector.session is not None and self._reconnector.session.settled

    @property
    def nick(self) -> str:
        """Our present nick on the server; while disconnected, the last one."""
        return self._reconnector.view.nick

    @property
    def is_ours(self) -> bool:
        """Whether the server is one of ours, which tells the class of every user."""
        return self._reconnector.session is not None and self._reconnector.session.is_ours

    @property
    def view(self) -> NetworkView:
        """The channels we are in and their users; while disconnected, those of the last connection."""
        return self._reconnector.view

    @property
    def mark(self) -> ReceiveMark | None:
        """How far messages were received without a gap; None before a connection has settled.

        Before the first message, this is the time of connecting; while missed messages are pending, the mark before
        them.
        """
        # While a catch-up is pending, newer messages were received but older ones are missing.
        return self._missed_since or self._delivery.mark

    @property
    def is_behind(self) -> bool:
        """Whether missed messages are still to be fetched while live messages are already delivered."""
        return self._missed_since is not None

    @property
    def channels(self) -> list[str]:
        """Names of the channels we are in; while disconnected, of those that will be rejoined."""
        return self.view.channels if self.connected else self._joined.wanted

    def members(self, channel: str) -> list[ChannelMember]:
        """Return the known members of a channel that we are in; empty if we are not in it."""
        return self.view.members(channel)

    async def _settle(self, session: IrcSession) -> None:
        await session.barrier()
        await self._profile.publish_all(session)
        await self._joined.join_all(session)
        await refresh_members(session, session.view.channels)
        since = self._missed_since or (self._cursor.load() if self._cursor is not None else None) or self.mark
        try:
            await catch_up(session, self._delivery, since, runtime=self._runtime)
            since = None
        except HistoryUnavailable as error:
            log.error("%s: the server cannot read its history yet: %s", session.view.nick, error)
        self._missed_since = since
        self._delivery.release()
        self._delivery.begin_at(session.server_time or self._runtime.utc())

    async def _retry_catch_up(self, session: IrcSession) -> None:
        """Repeat a catch-up that failed until the server can read its history, with pauses."""
        while self._missed_since is not None:
            await asyncio.sleep(self._timing.regain)
            try:
                await catch_up(session, self._delivery, self._missed_since, runtime=self._runtime)
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
        """Send a message of any length to a channel or nick; return the msgids that the server gave.

        A long text may become several messages; the first ``skip`` of them are left out as sent before. ``tags``:
        message tags that clients may send. ``NotSent`` is raised with the reason if the server refuses or there is no
        connection.
        """
        return await self._sender.send(self._session(), "PRIVMSG", target, text, tags, skip)

    async def send_notice(
        self, target: str, text: str, tags: Mapping[str, str] = NO_TAGS, *, skip: int = 0
    ) -> list[str]:
        """Send a NOTICE to a channel or nick, which no client answers automatically.

        Returns the msgids that the server gave. A long text may become several messages; the first ``skip`` of them
        are left out as sent before. ``tags``: message tags that clients may send. ``NotSent`` is raised with the
        reason if the server refuses or there is no connection.
        """
        return await self._sender.send(self._session(), "NOTICE", target, text, tags, skip)

    async def request(self, verb: str, *params: str, tags: Mapping[str, str] = NO_TAGS) -> list[Line]:
        """Send a command with these parameters; return the lines of the answer, also error numerics.

        ``NotSent`` is raised if no answer comes in time or there is no connection.
        """
        return list(lines_of(await self._session().ask(Line(verb, params, tags=tags))))

    # Channels and users

    async def join_channel(self, name: str, key: str = "") -> None:
        """Join a channel, now and after each reconnect; ``NotSent`` has the reason if that fails.

        ``key`` is the channel's password, if it has one.
        """
        session = self._session()
        await self._joined.join(session, name, key)
        await refresh_members(session, [name])

    async def part_channel(self, name: str, reason: str = "") -> None:
        """Leave a channel and do not rejoin it; ``NotSent`` has the reason if the server refuses."""
        session = self._session()
        check_target(name)
        refused = refusal(await session.ask(Line("PART", (name, reason) if reason else (name,))))
        self._joined.parted(name)
        if refused is not None:
            raise NotSent(with_hint(refused.reason, name, session.view.channels), refused.code)

    async def send_who(self, target: str) -> list[ChannelMember]:
        """Query the server (WHO) for the members of a channel, or for one user by nick."""
        return await query_who(self._session(), target)

    async def set_metadata(self, key: str, value: str | None, target: str = "*") -> bool:
        """Set the metadata ``key`` of ``target``, or remove it if ``value`` is None.

        ``target``: a channel, a nick, ``*`` for ourselves. Returns False if the server does not support metadata or
        there is no connection for our own values; these are stored and published after every reconnect. ``NotSent``
        is raised if the server refuses.
        """
        if target == "*" or self.view.is_self(target):
            return await self._profile.publish(self._reconnector.session, key, value)
        return await set_metadata(self._session(), target, key, value)

    async def get_metadata(self, target: str, *keys: str) -> dict[str, str]:
        """Return metadata of a user or channel as a dict: the values of ``keys``, or of all keys."""
        return await get_metadata(self._session(), target, keys)

    async def set_away(self, text: str = "") -> None:
        """Set our away message, or clear it with an empty text; it is set again after reconnects."""
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
        """Return at most ``limit`` messages of a channel or user, oldest first.

        ``after``, ``before`` and ``around`` are message ids; without any of them the latest messages are returned.
        Raises ``NoHistory`` if the server has no history, ``NotSent`` if it refuses.
        """
        since, until, middle = (None if each is None else by_id(each) for each in (after, before, around))
        return await fetch_messages(self._session(), channel, since, until, limit, middle)

    async def search(self, channel: str, text: str, by_meaning: bool = False) -> list[Message]:
        """Return messages of a channel that match ``text``; ``NotSent`` if the server has no search.

        They contain all words of ``text``, oldest first; with ``by_meaning`` they are similar to it, best match
        first.
        """
        return await search(self._session(), channel, text, by_meaning)

    # The Transport protocol

    async def send(self, channel: str, message: str, sender: str = "") -> None:
        """Send a message to a channel; ``NotSent`` if ``sender`` is given and is not our nick."""
        if sender and not self.view.is_self(sender):
            raise NotSent(f"{sender} is not on this connection, {self.nick} is")
        await self.send_privmsg(channel, message)

    async def read(self, channel: str, since: datetime | None = None) -> list[Message]:
        """Return messages of a channel since a time (or the latest), oldest first.

        Without a connection or a history on the server, these are the messages that this process has received.
        """
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
        """Create a channel by joining it; ``NotSent`` if the server refuses."""
        await self.join_channel(name)

    async def list_channels(self) -> list[str]:
        """Return the names of the channels on the server that we may see (LIST)."""
        return [line.params[1] for line in await self.request("LIST") if line.verb == "322" and len(line.params) > 1]

    async def get_members(self, channel: str) -> list[str]:
        """Return the nicks of a channel's members, as the server answers WHO."""
        return [member.nick for member in await self.send_who(channel)]
