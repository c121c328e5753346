"""The team's IRC connection: queued incoming messages, notices, a cursor across restarts."""

import asyncio
import json
import logging
import re
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from culture.clients.shared.vouching import Nicks, Vouching
from culture.lib.files import replace_file
from culture.orchestrator.journal.state import Act
from culture.orchestrator.journal.store import TeamStore
from culture.protocol.names import fold
from culture.protocol.vocabulary import ClientTag, ExtensionVerb, FactKind, UserClass
from culture.transport import Address, ClientIdentity, IRCTransport, Message, NotSent, ReceiveMark

log = logging.getLogger(__name__)

MARK = "mark.json"
LATELY = 300.0
"""Seconds for which messages are remembered, to see who is idle."""
JUST = 10.0
"""A message this many seconds before the end of a turn counts as its closing words."""
_NO_PRIVILEGES = "481"
_MOST_LINES = 200
_MOST_SPEAKERS = 500
_MOST_WAITING = 1000
_REQUEST = re.compile(r"^[ \t]*TASK:", re.MULTILINE)
_FACT_LIMIT = 400
Entry = TypeVar("Entry")


class ReadCursor:
    """Read cursor of the team's connection, stored in a file: up to where messages were handled."""

    def __init__(self, file: Path, book: TeamStore) -> None:
        self._file = file
        self._book = book

    def load(self) -> ReceiveMark | None:
        """Return the position (latest msgids and time) up to which messages were handled, or None."""
        try:
            data = json.loads(self._file.read_text(encoding="utf-8"))
            return ReceiveMark(tuple(data["msgids"]), datetime.fromisoformat(data["time"]))
        except (FileNotFoundError, ValueError, KeyError):
            return None

    def knows(self, msgid: str) -> bool:
        """Return whether the message with this id was handled."""
        return msgid in self._book.state.handled

    def save(self, mark: ReceiveMark | None) -> None:
        """Store that every message up to the position ``mark`` was handled; None stores nothing."""
        if mark is None:
            return
        replace_file(self._file, json.dumps({"msgids": mark.msgids, "time": mark.time.isoformat()}))


class TeamRooms:
    """The team's IRC connection: ``next`` returns the incoming messages, ``say`` sends notices."""

    def __init__(
        self,
        address: Address,
        identity: ClientIdentity,
        folder: Path,
        book: TeamStore,
        channels: Iterable[str] = (),
        pm: Collection[str] = (),
        em: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._book = book
        team = Nicks(lambda: [em, *(member.nick for member in book.state.members.values())])
        self._clock = clock
        self._waiting: asyncio.Queue[Message] = asyncio.Queue(_MOST_WAITING)
        self._cursor = ReadCursor(folder / MARK, book)
        self._published: dict[str, str] = {}
        """The fact last published of each task, as JSON."""
        self._recent: dict[str, deque[tuple[float, str]]] = {}
        self.irc = IRCTransport(
            address, identity, channels, cursor=self._cursor, on_message=self._on_message, agents=team, people=pm
        )
        self._vouching = Vouching("accounts", self.irc, team)
        self._last_mentions: dict[str, tuple[float, frozenset[str]]] = {}
        """Per speaker: time of the last message and the nicks it mentioned."""
        self._unsent: deque[tuple[str, str, str]] = deque(maxlen=_MOST_LINES)
        self.on_spoke: Callable[[str], None] = lambda nick: None
        """Called with the nick of a member that spoke."""

    @property
    def has_been_here(self) -> bool:
        """Return whether this team was connected before, so that it may have missed messages."""
        return self._cursor.load() is not None

    async def start(self) -> None:
        """Connect to the server; messages missed while disconnected are queued before new ones."""
        await self.irc.start()
        self._cursor.save(self._cursor.load() or self.irc.mark)

    async def stop(self, reason: str) -> None:
        """Disconnect from the server with this quit reason."""
        await self.irc.stop(reason)

    async def next(self) -> Message:
        """Return the next incoming message; waits until there is one."""
        return await self._waiting.get()

    def mark_handled(self) -> None:
        """Store that the messages returned by ``next`` are handled, unless further ones are pending."""
        # While a catch-up is pending, older messages are missing: a newer mark would skip them for ever.
        if self._waiting.empty() and not self.irc.is_behind:
            self._cursor.save(self.irc.mark)

    def recent_lines(self, nick: str) -> str:
        """Return a user's messages of the last minutes (``LATELY`` s), one per line."""
        since = self._clock() - LATELY
        return "\n".join(line for at, line in self._recent.get(fold(nick), ()) if at >= since)

    def has_just_mentioned(self, nick: str, other: str) -> bool:
        """Return whether a user's last message is only seconds old and mentions ``other``."""
        at, mentioned = self._last_mentions.get(fold(nick), (0.0, frozenset[str]()))
        return abs(self._clock() - at) <= JUST and fold(other) in mentioned

    def is_in(self, channel: str) -> bool:
        """Return whether the team's connection is in a channel."""
        return fold(channel) in map(fold, self.irc.channels)

    async def join(self, channel: str) -> bool:
        """Join a channel; return False if the connection was lost, so that the caller has to retry.

        True also if the server refused the channel: trying again would not help.
        """
        if not self.is_in(channel):
            try:
                await self.irc.join_channel(channel)
            except NotSent as refused:
                log.warning("not in %s: %s", channel, refused)
                return self.irc.connected and not refused.uncertain
        return True

    async def leave(self, channel: str) -> None:
        """Leave a channel; a refusal is only logged."""
        try:
            await self.irc.part_channel(channel, "the task is over")
        except NotSent as refused:
            log.info("could not leave %s: %s", channel, refused)

    async def say(self, channel: str, text: str, reply_to: str = "") -> bool:
        """Send a notice to a channel; return whether it was sent.

        Without a connection the notice is queued for ``catch_up``. ``reply_to``: the id of the message it answers.
        """
        tags = {ClientTag.REPLY.value: reply_to} if reply_to else {}
        try:
            await self.irc.send_notice(channel, text, tags)
        except NotSent as refused:
            log.warning("not sent to %s: %s (%s)", channel, text, refused)
            if not refused.code:
                self._unsent.append((channel, text, reply_to))
            return False
        return True

    async def catch_up(self) -> None:
        """Send the notices that were queued while there was no connection."""
        while self._unsent and self.irc.connected:
            if not await self.say(*self._unsent.popleft()):
                return

    async def say_once(self, key: str, text: str, *channels: str, reply_to: str = "") -> None:
        """Send a notice to each of the channels, unless one with the same ``key`` was sent before.

        Keys are kept in the journal, so this holds across restarts. ``reply_to``: the id of the message that it
        answers.
        """
        if key in self._book.state.announced:
            return
        self._book.done(Act.ANNOUNCED, key=key)
        for channel in dict.fromkeys(channels):
            await self.say(channel, text, reply_to)

    async def publish_task(self, key: str, fact: Mapping[str, Any]) -> None:
        """Publish a fact about a task in the server's ledger, if the fact has changed.

        ``key``: the task's id; ``fact``: its fields.
        """
        text = json.dumps({name: _short(value) for name, value in fact.items()}, ensure_ascii=False)
        if self._published.get(key) == text:
            return
        self._published[key] = text
        try:
            tags = {ClientTag.FACT.value: text}
            for line in await self.irc.request(ExtensionVerb.LEDGER, "PUT", FactKind.TASK, key, tags=tags):
                if line.verb in ("FAIL", _NO_PRIVILEGES):
                    log.warning("%s was not published: %s", key, line.params[-1])
        except NotSent as refused:
            self._published.pop(key, None)
            log.info("%s was not published: %s", key, refused)

    def _on_message(self, message: Message) -> None:
        if message.kind is UserClass.BOT and self._vouching.why_not(message) is None:
            # A member on a server where neither it nor the team has an account.
            message = replace(message, kind=UserClass.AGENT)
        if message.own or self._vouching.is_known(message):
            self._remember(message)
        if not message.own and not message.notice and not message.private:
            try:
                self._waiting.put_nowait(message)
            except asyncio.QueueFull:
                # Transient, like a full disk: the connection ends, and the message comes again from the history.
                raise OSError(f"{_MOST_WAITING} messages wait to be handled") from None

    def _remember(self, message: Message) -> None:
        """Keep a member's message in memory, for hand-off pages and the idle check."""
        if not message.private:
            line = f"[{message.timestamp:%H:%M:%S}] {message.channel} <{message.sender}> {message.text}"
            lines = _move_to_end(self._recent, fold(message.sender), deque[tuple[float, str]](maxlen=_MOST_LINES))
            lines.append((message.timestamp.timestamp(), line))
        _move_to_end(self._last_mentions, fold(message.sender), (0.0, frozenset[str]()))
        mentions = frozenset(map(fold, message.mentions))
        self._last_mentions[fold(message.sender)] = (message.timestamp.timestamp(), mentions)
        self.on_spoke(message.sender)


def _move_to_end(entries: dict[str, Entry], nick: str, new: Entry) -> Entry:
    """Return the entry of the speaker ``nick`` and move it to the end of ``entries``.

    ``new`` is added if there is none. If there are too many entries, that of the speaker who was silent longest is
    dropped.
    """
    entry = entries[nick] = entries.pop(nick, new)
    if len(entries) > _MOST_SPEAKERS:
        del entries[next(iter(entries))]
    return entry


def split_requests(text: str) -> Iterator[str]:
    """Yield the requests of a message: each begins with ``TASK:`` and ends before the next."""
    starts = [match.start() for match in _REQUEST.finditer(text)]
    for start, end in pairwise([*starts, len(text)]):
        yield text[start:end].strip()


def _short(value: Any) -> Any:
    return value[:_FACT_LIMIT] if isinstance(value, str) else value
