"""IRCTransport: somebody on IRC, for as long as it is wanted."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime

from culture.protocol.message import NO_TAGS
from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import Receipt
from culture.transport.catchup import HistoryUnavailable, can_catch_up, catch_up
from culture.transport.channels import JoinedChannels, hinted
from culture.transport.dedup import Delivery
from culture.transport.history import between, by_id, by_time, found, page_size
from culture.transport.profile import Profile, get_metadata, set_metadata
from culture.transport.reconnect import Reconnector, Setup
from culture.transport.requests import lines_of, refusal
from culture.transport.sending import check_target
from culture.transport.session import IrcSession
from culture.transport.speaker import Speaker
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
    guarded,
)
from culture.transport.view import NetworkView
from culture.transport.who import look_around, who

log = logging.getLogger(__name__)


class _Listener:
    """Passes on what happens to whom it concerns."""

    def __init__(
        self, delivery: Delivery, rooms: JoinedChannels, on_invite: OnInvite | None, on_receipt: OnReceipt | None
    ) -> None:
        self._delivery = delivery
        self.said = delivery.said
        self.joined = rooms.joined
        self.parted = rooms.parted
        self.renamed = rooms.renamed
        self._rooms = rooms
        self._on_invite = on_invite
        self._on_receipt = on_receipt
        self.on_progress: OnProgress | None = None
        self.on_arrival: OnArrival | None = None
        self.on_line: OnLine | None = None

    def begun(self, session: IrcSession) -> None:
        if can_catch_up(session):
            self._delivery.hold()
        if self.on_line is not None:
            session.watchers.append(self._line)

    def _line(self, line: Line) -> None:
        guarded(self.on_line, line)

    def kicked(self, channel: str, reason: str) -> None:
        self._rooms.parted(channel)
        self._rooms.outside(channel, reason)

    def arrived(self, channel: str, nick: str) -> None:
        guarded(self.on_arrival, channel, nick)

    def invited(self, channel: str, by: ChannelMember | None) -> None:
        guarded(self._on_invite, channel, by)

    def received(self, msgid: str, receipt: Receipt) -> None:
        guarded(self._on_receipt, msgid, receipt)

    def progressed(self, msgid: str, receipt: Receipt, by: str) -> None:
        guarded(self.on_progress, msgid, receipt, by)


class IRCTransport:
    """One identity on one server. Callbacks are called in the order of what happens, and must not block."""

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
        """Be ready to come; who is not ``patient`` tries once, and is told ``Unreachable`` when that fails.

        ``agents`` and ``people`` are nicks: on a server without classes they tell who is what.
        """
        self.address = address
        self.identity = identity
        self._cursor = cursor
        self._timing = timing or Timing()
        self._delivery = Delivery(on_message, cursor)
        self._rooms = JoinedChannels(channels, on_outside)
        listener = _Listener(self._delivery, self._rooms, on_invite, on_receipt)
        listener.on_progress, listener.on_arrival = on_progress, on_arrival
        listener.on_line = on_line
        setup = Setup(address, identity, self._timing, agents, people, patient)
        self._standing = Profile(identity.bot)
        self._keeper = Reconnector(setup, listener, self._settle, self._tend, on_state)
        self._missed_since: ReceiveMark | None = None
        self._speaker = Speaker(self._delivery)

    # Being there

    async def start(self) -> None:
        """Return once registered and in the channels; ``Hopeless`` for what does not get better by trying again."""
        await self._keeper.start()

    async def stop(self, reason: str = "") -> None:
        """Leave; nothing of it goes on afterwards."""
        await self._keeper.stop(reason)

    async def restart(self, identity: ClientIdentity | None = None) -> None:
        """Start once more what was given up, with the identity as it is by now; like ``start``."""
        await self._keeper.stop("")
        if identity is not None:
            self.identity = identity
            self._keeper.renew(identity)
        await self._keeper.start()

    @property
    def connected(self) -> bool:
        """Whether there is a server to talk to."""
        return self._keeper.session is not None

    @property
    def settled(self) -> bool:
        """Whether we are in our channels, and were told what we missed as far as that can be told."""
        return self._keeper.session is not None and self._keeper.session.settled

    @property
    def nick(self) -> str:
        """Our own, as the server has it."""
        return self._keeper.view.nick

    @property
    def is_ours(self) -> bool:
        """Whether the server is one of ours, and tells what everybody is."""
        return self._keeper.session is not None and self._keeper.session.is_ours

    @property
    def view(self) -> NetworkView:
        """Who is where, as of this connection or the last one."""
        return self._keeper.view

    @property
    def mark(self) -> ReceiveMark | None:
        """Up to where everything was received by this process; before the first message, the time of coming."""
        # While something missed is outstanding, what came since is not all there was.
        return self._missed_since or self._delivery.mark

    @property
    def is_behind(self) -> bool:
        """Whether something that was missed is outstanding, while what is new is handed on."""
        return self._missed_since is not None

    @property
    def channels(self) -> list[str]:
        """The channels we are in; while disconnected, those we shall be in again."""
        return self.view.channels if self.connected else self._rooms.wanted

    def members(self, channel: str) -> list[ChannelMember]:
        """Who is in a channel of ours."""
        return self.view.members(channel)

    async def _settle(self, session: IrcSession) -> None:
        await session.barrier()
        await self._standing.tell(session)
        await self._rooms.enter_all(session)
        await look_around(session, session.view.channels)
        since = self._missed_since or (self._cursor.load() if self._cursor is not None else None) or self.mark
        try:
            await catch_up(session, self._delivery, since)
            since = None
        except HistoryUnavailable as error:
            log.error("%s cannot be told yet what it missed: %s", session.view.nick, error)
        self._missed_since = since
        self._delivery.release()
        self._delivery.begin_at(session.server_time or datetime.now(UTC))

    async def _tend(self, session: IrcSession) -> None:
        """What a connection that has settled still lacks: better late than never."""
        while self._missed_since is not None:
            await asyncio.sleep(self._timing.regain)
            try:
                await catch_up(session, self._delivery, self._missed_since)
                self._missed_since = None
            except HistoryUnavailable:
                continue

    def _here(self) -> IrcSession:
        if self._keeper.session is None:
            raise NotSent("not connected")
        return self._keeper.session

    # Speaking

    async def send_privmsg(
        self, target: str, text: str, tags: Mapping[str, str] = NO_TAGS, *, skip: int = 0
    ) -> list[str]:
        """Say something, however long; the ids the server gave it. ``NotSent`` with the server's words.

        A long text may become several messages; the first ``skip`` of them were said before.
        """
        return await self._speaker.say(self._here(), "PRIVMSG", target, text, tags, skip)

    async def send_notice(
        self, target: str, text: str, tags: Mapping[str, str] = NO_TAGS, *, skip: int = 0
    ) -> list[str]:
        """The same for what must never be answered automatically."""
        return await self._speaker.say(self._here(), "NOTICE", target, text, tags, skip)

    async def request(self, verb: str, *params: str, tags: Mapping[str, str] = NO_TAGS) -> list[Line]:
        """Any other command; the lines of its answer, refusals included."""
        return list(lines_of(await self._here().ask(Line(verb, params, tags=tags))))

    # Channels and people

    async def join_channel(self, name: str, key: str = "") -> None:
        """Come into a channel, and again after every reconnect. ``NotSent`` with the server's words."""
        session = self._here()
        await self._rooms.enter(session, name, key)
        await look_around(session, [name])

    async def part_channel(self, name: str, reason: str = "") -> None:
        """Leave a channel, for good."""
        session = self._here()
        check_target(name)
        refused = refusal(await session.ask(Line("PART", (name, reason) if reason else (name,))))
        self._rooms.parted(name)
        if refused is not None:
            raise NotSent(hinted(refused.reason, name, session.view.channels), refused.code)

    async def send_who(self, target: str) -> list[ChannelMember]:
        """Who is in a channel, or who a nick is, as the server tells it now."""
        return await who(self._here(), target)

    async def set_metadata(self, key: str, value: str | None, target: str = "*") -> bool:
        """Publish something; False where the server knows no such thing.

        What we say of ourselves is said again after every reconnect, and can be set while there is no connection.
        """
        if target == "*" or self.view.is_self(target):
            return await self._standing.publish(self._keeper.session, key, value)
        return await set_metadata(self._here(), target, key, value)

    async def get_metadata(self, target: str, *keys: str) -> dict[str, str]:
        """What somebody or a channel says of itself, of these keys or of all."""
        return await get_metadata(self._here(), target, keys)

    async def set_away(self, text: str = "") -> None:
        """Be away with these words, or without any be back; it holds across reconnects."""
        await self._standing.be_away(self._keeper.session, text)

    async def history(
        self,
        channel: str,
        after: str | None = None,
        before: str | None = None,
        limit: int = 50,
        *,
        around: str | None = None,
    ) -> list[Message]:
        """What was said in a channel or with somebody, between two ids or around one, the oldest first.

        ``NoHistory`` where the server has none.
        """
        since, until, middle = (None if each is None else by_id(each) for each in (after, before, around))
        return await between(self._here(), channel, since, until, limit, middle)

    async def search(self, channel: str, text: str, by_meaning: bool = False) -> list[Message]:
        """What was said there with all these words, the oldest first; or what is nearest in meaning, the best first.

        ``NotSent`` with the server's words where it has no such search.
        """
        return await found(self._here(), channel, text, by_meaning)

    # The places of people and programs, whatever they are made of

    async def send(self, channel: str, message: str, sender: str = "") -> None:
        """Say something; the sender is whoever is on this connection."""
        if sender and not self.view.is_self(sender):
            raise NotSent(f"{sender} is not on this connection, {self.nick} is")
        await self.send_privmsg(channel, message)

    async def read(self, channel: str, since: datetime | None = None) -> list[Message]:
        """What was said since then, from the server's history or else as received here, the oldest first."""
        session = self._keeper.session
        try:
            if session is None:
                raise NoHistory("not connected")
            limit = page_size(session)
            return await between(session, channel, None if since is None else by_time(since), None, limit)
        except NoHistory:
            heard = self._delivery.recent(channel)
            return [message for message in heard if since is None or message.timestamp > since]

    async def create_channel(self, name: str) -> None:
        """Make a channel by coming into it."""
        await self.join_channel(name)

    async def list_channels(self) -> list[str]:
        """The channels there are on the server."""
        return [line.params[1] for line in await self.request("LIST") if line.verb == "322" and len(line.params) > 1]

    async def get_members(self, channel: str) -> list[str]:
        """The nicks of those in a channel."""
        return [member.nick for member in await self.send_who(channel)]
