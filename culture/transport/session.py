"""One registered connection: reads what comes, keeps the view true, and knows the answer to each command."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol

from culture.protocol.caps import MULTILINE
from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import Cap, Receipt, Tag
from culture.transport.batches import HISTORY, LABELED, TARGETS, Item, ReceivedBatch, ReceivedBatches
from culture.transport.connection import IrcConnection
from culture.transport.pace import SendPace
from culture.transport.parse_messages import MessageParser, time_of
from culture.transport.requests import CommandAnswer, Requests, refusal
from culture.transport.sending import MultilineLimits
from culture.transport.types import ChannelMember, Message, NotSent
from culture.transport.view import NetworkView
from culture.transport.view_updates import apply

log = logging.getLogger(__name__)

_BEHIND = (*HISTORY, TARGETS)
"""Batches of what was; nothing in them happens now."""


_LATER = 64


class SessionListener(Protocol):
    """Whoever wants to know what happens on a connection."""

    def begun(self, session: "IrcSession") -> None:
        """There is a connection; nothing has come on it yet."""

    def said(self, message: Message) -> None:
        """Somebody said something."""

    def joined(self, channel: str) -> None:
        """We are in a channel."""

    def parted(self, channel: str) -> None:
        """We have left a channel."""

    def kicked(self, channel: str, reason: str) -> None:
        """We were sent away from a channel."""

    def renamed(self, old: str, new: str) -> None:
        """A channel has another name."""

    def arrived(self, channel: str, nick: str) -> None:
        """Somebody else has come into a channel."""

    def invited(self, channel: str, by: ChannelMember | None) -> None:
        """Somebody, or without a member the server, wants us in a channel."""

    def received(self, msgid: str, receipt: Receipt) -> None:
        """A message of ours has come so far."""

    def progressed(self, msgid: str, receipt: Receipt, by: str) -> None:
        """The same with one of those whom it is for."""


class IrcSession:
    """From the welcome to the end of a connection."""

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
        """Those who look at every line."""
        self.settled = False
        """Whether we are in our channels, and were told what we missed."""
        self.over = False
        self.server_time: datetime | None = None
        """When the server last did something, by its own clock."""
        self._later: deque[asyncio.TimerHandle] = deque(maxlen=_LATER)

    @property
    def is_ours(self) -> bool:
        """Whether this is a server of ours, which takes things as fast as it can."""
        return Cap.MENTIONS.value in self.enabled

    @property
    def multiline(self) -> MultilineLimits | None:
        """How long messages of several lines may be; None where there are none."""
        both = MULTILINE in self.enabled and "batch" in self.enabled
        return MultilineLimits(self.enabled[MULTILINE]) if both else None

    def take(self, line: Line) -> None:
        """A line came."""
        for item in self._batches.take(line):
            self._take(item)

    def _take(self, item: Item) -> None:
        if isinstance(item, ReceivedBatch) and item.kind == LABELED:
            for inner in item.items:
                self._happened(inner)
        else:
            self._happened(item)
        own = self.view.is_self(item.source)
        self._requests.take(item, own)

    def _happened(self, item: Item) -> None:
        if isinstance(item, ReceivedBatch):
            if item.kind == MULTILINE:
                self._said(item)
            elif item.kind not in _BEHIND:
                for inner in item.items:
                    self._happened(inner)
            return
        self.server_time = time_of(item.tags) or self.server_time
        before = self._about_us(item)
        apply(self.view, item)
        for watcher in tuple(self.watchers):
            watcher(item)
        if before is not None:
            before()
        if item.verb in ("PRIVMSG", "NOTICE"):
            self._said(item)
        elif item.verb == "PING":
            self._connection.write(Line("PONG", item.params[-1:]))
        elif item.verb == "CAP":
            self._cap(item.params)

    def _said(self, item: Item) -> None:
        message = self.reader.message(item)
        if message is not None:
            self._listener.said(message)

    def _about_us(self, line: Line) -> Callable[[], None] | None:
        """What to tell once the view knows it; who we are is looked up before."""
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
        """Whoever sent a line, with the class that it tells; None for our own server."""
        nick, user, _ = line.source.partition("!")
        if not user and self.view.fold(nick) == self.view.fold(self.view.server):
            return None
        known = self.view.user(nick)
        account = line.tags.get("account") or (known.account if known is not None else None)
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

    # What we say

    def write(self, *lines: Line) -> None:
        """Send lines that nobody waits for an answer to."""
        self._connection.write(*lines)

    def write_later(self, seconds: float, line: Line) -> None:
        """Send a line after a while, if the connection still stands."""
        if len(self._later) == _LATER:
            self._later[0].cancel()
        self._later.append(asyncio.get_running_loop().call_later(seconds, self.write, line))

    async def ask(self, *lines: Line, paced: bool = False) -> list[Item]:
        """Send a command, which may be several lines with one answer; what the server says to it."""
        if self._pace is not None and paced:
            await self._pace.wait(len(lines))
        if self.over:
            raise NotSent("not connected")
        try:
            for line in lines:
                str(line)
        except ValueError as error:
            raise NotSent(f"this cannot be sent: {error}") from error
        outgoing, answer = self._requests.begin_all(list(lines))
        self._connection.write(*outgoing)
        return await self._wait(answer)

    async def _wait(self, answer: CommandAnswer) -> list[Item]:
        try:
            await self._connection.drain()
            return await answer.wait(self._answer_within + self._connection.backlog)
        finally:
            self._requests.drop(answer)

    async def command(self, *lines: Line) -> list[Item]:
        """The same, and ``NotSent`` when the server refuses."""
        items = await self.ask(*lines)
        refused = refusal(items)
        if refused is not None:
            raise refused
        return items

    async def barrier(self) -> None:
        """Wait until the server has done everything that was said so far."""
        await self.ask(Line("PING", ("here",)))

    def end(self, reason: str) -> None:
        """The connection is gone."""
        self.over = True
        for handle in self._later:
            handle.cancel()
        self._later.clear()
        self._requests.fail(reason)
