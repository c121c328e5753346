"""One registered connection: updates the view, reports events, matches answers to commands."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol

from culture.lib.ratelimit import FixedRate, TokenBucket
from culture.protocol.caps import MULTILINE
from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import Cap, Receipt, Tag
from culture.transport.batches import HISTORY, LABELED, TARGETS, Item, MultilineLimits, ReceivedBatch, ReceivedBatches
from culture.transport.connection import IrcConnection
from culture.transport.parse_messages import MessageParser, time_of
from culture.transport.requests import CommandAnswer, Requests, refusal
from culture.transport.types import ChannelMember, Message, NotSent
from culture.transport.view import NetworkView
from culture.transport.view_updates import apply

log = logging.getLogger(__name__)

_PAST_BATCHES = (*HISTORY, TARGETS)
"""Batches with lines from the past: they are no events."""
_MAX_DELAYED = 64


_FOREIGN_RATE = FixedRate(burst=5, rate=0.5)
"""Send rate on servers that are not ours, in lines and lines per second."""


class SendPace:
    """Delays lines so that a server that is not ours does not throttle us for sending too fast."""

    def __init__(self) -> None:
        self._bucket = TokenBucket(asyncio.get_running_loop().time())

    async def wait(self, lines: int) -> None:
        """Wait until ``lines`` more lines may be sent."""
        pause = self._bucket.spend(lines, _FOREIGN_RATE, asyncio.get_running_loop().time())
        if pause:
            await asyncio.sleep(pause)


class SessionListener(Protocol):
    """Receives the events of a session: each method is called when its event has happened."""

    def begun(self, session: "IrcSession") -> None:
        """Called when a connection is registered, before anything else has arrived on it."""

    def message_arrived(self, message: Message) -> None:
        """Called with each live message, whether others or we ourselves sent it."""

    def joined(self, channel: str) -> None:
        """Called when we have joined a channel."""

    def parted(self, channel: str) -> None:
        """Called when we have left a channel."""

    def kicked(self, channel: str, reason: str) -> None:
        """Called when we were kicked from a channel; ``reason`` says by whom and why."""

    def renamed(self, old: str, new: str) -> None:
        """Called when the channel ``old`` was renamed to ``new``."""

    def arrived(self, channel: str, nick: str) -> None:
        """Called when another user, ``nick``, has joined a channel."""

    def invited(self, channel: str, by: ChannelMember | None) -> None:
        """Called when the user ``by``, or the server if that is None, invited us to a channel."""

    def received(self, msgid: str, receipt: Receipt) -> None:
        """Called when the server reported how far our message ``msgid`` has come (``receipt``)."""

    def progressed(self, msgid: str, receipt: Receipt, by: str) -> None:
        """Called when the recipient ``by`` reported how far our message ``msgid`` has come.

        ``receipt``: how far, such as ``delivered``.
        """


class IrcSession:
    """A connection to a server, from the end of the registration to the end of the connection."""

    def __init__(
        self,
        connection: IrcConnection,
        enabled: Mapping[str, str],
        view: NetworkView,
        listener: SessionListener,
        reader: MessageParser,
        answer_within: float,
    ) -> None:
        self._connection = connection
        self.enabled = dict(enabled)
        self.view = view
        self._listener = listener
        self.reader = reader
        self._batches = ReceivedBatches()
        self._requests = Requests(labels="labeled-response" in enabled)
        self._answer_within = answer_within
        self._pace = None if self.is_ours else SendPace()
        self.watchers: list[Callable[[Line], None]] = []
        """Called with every live line."""
        self.settled = False
        """Whether the channels are joined and the catch-up is done."""
        self.over = False
        self.server_time: datetime | None = None
        """Time of the server's last line, by its own clock."""
        self._delayed: deque[asyncio.TimerHandle] = deque(maxlen=_MAX_DELAYED)

    @property
    def is_ours(self) -> bool:
        """Whether the server runs culture, and so needs no limit of our send rate."""
        return Cap.MENTIONS.value in self.enabled

    @property
    def multiline(self) -> MultilineLimits | None:
        """Limits of multiline messages; None if the server does not support them."""
        both = MULTILINE in self.enabled and "batch" in self.enabled
        return MultilineLimits(self.enabled[MULTILINE]) if both else None

    def take(self, line: Line) -> None:
        """Process one line from the server: update the view, report events, match answers."""
        for item in self._batches.take(line):
            self._take(item)

    def _take(self, item: Item) -> None:
        if isinstance(item, ReceivedBatch) and item.kind == LABELED:
            for inner in item.items:
                self._handle(inner)
        else:
            self._handle(item)
        own = self.view.is_self(item.source)
        self._requests.take(item, own)

    def _handle(self, item: Item) -> None:
        if isinstance(item, ReceivedBatch):
            if item.kind == MULTILINE:
                self._handle_text(item)
            elif item.kind not in _PAST_BATCHES:
                for inner in item.items:
                    self._handle(inner)
            return
        self.server_time = time_of(item.tags) or self.server_time
        notify = self._event_of(item)
        apply(self.view, item)
        for watcher in tuple(self.watchers):
            watcher(item)
        if notify is not None:
            notify()
        if item.verb in ("PRIVMSG", "NOTICE"):
            self._handle_text(item)
        elif item.verb == "PING":
            self._connection.write(Line("PONG", item.params[-1:]))
        elif item.verb == "CAP":
            self._cap(item.params)

    def _handle_text(self, item: Item) -> None:
        message = self.reader.message(item)
        if message is not None:
            self._listener.message_arrived(message)

    def _event_of(self, line: Line) -> Callable[[], None] | None:
        """Return the call of the listener that a line causes, to make after the view is updated.

        None if it causes none. Whether the line is about us is decided before the update, because a NICK changes
        who we are.
        """
        params, listener = line.params, self._listener
        mine = self.view.is_self(line.source)
        match line.verb, len(params):
            case "JOIN", count if count and mine:
                return lambda: listener.joined(params[0])
            case "JOIN", count if count:
                return lambda: listener.arrived(params[0], line.source.partition("!")[0])
            case "PART", count if count and mine:
                return lambda: listener.parted(params[0])
            case "KICK", count if count > 1 and self.view.is_self(params[1]):
                by = line.source.partition("!")[0]
                return lambda: listener.kicked(params[0], f"kicked by {by}: {params[-1]}")
            case "RENAME", count if count > 1:
                return lambda: listener.renamed(params[0], params[1])
            case "INVITE", count if count > 1 and self.view.is_self(params[0]):
                return lambda: listener.invited(params[1], self._member(line))
            case "TAGMSG", _ if Tag.RECEIPT.value in line.tags:
                return lambda: self._receipt(line.tags, line.source)
        return None

    def _member(self, line: Line) -> ChannelMember | None:
        """Return the sender of a line with class and account; None if our server is the sender."""
        nick, user, _ = line.source.partition("!")
        if not user and self.view.fold(nick) == self.view.fold(self.view.server):
            return None
        user_view = self.view.user(nick)
        account = line.tags.get("account") or (user_view.account if user_view is not None else None)
        return ChannelMember(nick, account=account, kind=self.reader.kind(nick, line.tags))

    def _receipt(self, tags: Mapping[str, str], source: str) -> None:
        try:
            receipt = Receipt(tags[Tag.RECEIPT.value])
        except ValueError:
            return
        msgid, (nick, user, _) = tags.get("+draft/reply", ""), source.partition("!")
        if user:
            self._listener.progressed(msgid, receipt, nick)
        else:
            self._listener.received(msgid, receipt)

    def _cap(self, params: tuple[str, ...]) -> None:
        if len(params) > 2 and params[1].upper() == "DEL":
            for word in params[-1].split():
                self.enabled.pop(word, None)
            self._requests.labels = "labeled-response" in self.enabled

    def write(self, *lines: Line) -> None:
        """Send lines without waiting for an answer."""
        self._connection.write(*lines)

    def write_later(self, seconds: float, line: Line) -> None:
        """Send a line after ``seconds``, if the session has not ended by then."""
        if len(self._delayed) == _MAX_DELAYED:
            self._delayed[0].cancel()
        self._delayed.append(asyncio.get_running_loop().call_later(seconds, self.write, line))

    async def ask(self, *lines: Line, paced: bool = False) -> list[Item]:
        """Send one command (one line, or several with one answer); return the items of its answer.

        ``paced``: the send rate limit of foreign servers applies. ``NotSent`` is raised if the connection ends, no
        answer comes in time or a line is invalid; error lines of the server are part of the answer.
        """
        if self._pace is not None and paced:
            await self._pace.wait(len(lines))
        if self.over:
            raise NotSent("not connected")
        try:
            for line in lines:
                str(line)
        except ValueError as error:
            raise NotSent(f"this cannot be sent: {error}") from error
        outgoing, answer = self._requests.begin(list(lines))
        self._connection.write(*outgoing)
        return await self._wait(answer)

    async def _wait(self, answer: CommandAnswer) -> list[Item]:
        try:
            await self._connection.drain()
            return await answer.wait(self._answer_within + self._connection.backlog)
        finally:
            self._requests.drop(answer)

    async def command(self, *lines: Line) -> list[Item]:
        """Send one command and return the items of its answer; ``NotSent`` if the server refuses it.

        ``NotSent`` is also raised if the connection ends, no answer comes in time or a line is invalid.
        """
        items = await self.ask(*lines)
        refused = refusal(items)
        if refused is not None:
            raise refused
        return items

    async def barrier(self) -> None:
        """Wait until the server has processed everything sent so far: until it answers a PING."""
        await self.ask(Line("PING", ("here",)))

    def end(self, reason: str) -> None:
        """Mark the session as over; all pending commands raise ``NotSent`` with the reason."""
        self.over = True
        for handle in self._delayed:
            handle.cancel()
        self._delayed.clear()
        self._requests.fail(reason)
