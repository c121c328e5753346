"""The rooms of a person and their private conversations: what is unread in each, and what calls them there."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from culture.protocol.message import Message as Line
from culture.protocol.names import fold, is_channel
from culture.transport import IRCTransport, Message, NoHistory, NotSent
from culture.transport.history import by_time
from culture.transport.requests import refusal

_MOST_UNREAD = 500


@dataclass(frozen=True, slots=True)
class Unread:
    """A message that was not read yet."""

    at: datetime
    calls: bool
    id: str = ""


@dataclass(slots=True)
class Conversation:
    """A room, or a conversation with somebody."""

    name: str
    private: bool
    read_to: datetime | None = None
    """Up to when it was read, on whichever device."""
    last: datetime | None = None
    waiting: deque[Unread] = field(default_factory=lambda: deque(maxlen=_MOST_UNREAD))

    @property
    def unread(self) -> int:
        """How many messages were not read."""
        return len(self.waiting)

    @property
    def calls(self) -> int:
        """How many of them are for this person: mentions, and all in private."""
        return sum(each.calls for each in self.waiting)

    def heard(self, message: Message, calls: bool) -> None:
        """Something was said here; ``calls`` says that it is for this person."""
        if self.last is None or message.timestamp > self.last:
            self.last = message.timestamp
        if message.own:
            self.read(message.timestamp)
        elif not message.notice and (self.read_to is None or message.timestamp > self.read_to):
            self._keep(Unread(message.timestamp, calls, message.msgid))

    def _keep(self, new: Unread) -> None:
        """What is said while the history is counted comes twice, and before what is older."""
        if all(each.id != new.id for each in self.waiting):
            self.waiting.append(new)
            if len(self.waiting) > 1 and self.waiting[-2].at > new.at:
                self.waiting = deque(sorted(self.waiting, key=lambda each: each.at), maxlen=_MOST_UNREAD)

    def read(self, to: datetime) -> None:
        """It was read up to then; a mark only moves forward."""
        if self.read_to is None or to > self.read_to:
            self.read_to = to
        while self.waiting and self.waiting[0].at <= self.read_to:
            self.waiting.popleft()


class Talks:
    """All of one person's."""

    def __init__(self) -> None:
        self._talks: dict[str, Conversation] = {}

    def of(self, name: str, private: bool) -> Conversation:
        """The one of that name, new or not."""
        return self._talks.setdefault(fold(name), Conversation(name, private))

    def known(self, name: str) -> Conversation | None:
        """The one of that name."""
        return self._talks.get(fold(name))

    @property
    def calls(self) -> int:
        """How many unread messages are for this person."""
        return sum(talk.calls for talk in self._talks.values())

    def rooms(self, channels: list[str]) -> list[Conversation]:
        """Those of these channels, by name."""
        return sorted((self.of(name, private=False) for name in channels), key=lambda talk: fold(talk.name))

    def conversations(self) -> list[Conversation]:
        """Those in private, the newest first."""
        early = datetime.min.replace(tzinfo=UTC)
        found = [talk for talk in self._talks.values() if talk.private]
        return sorted(found, key=lambda talk: talk.last or early, reverse=True)


MARKREAD = "MARKREAD"
_CAP = "draft/read-marker"
_LOOKED_AT = 40
"""So many rooms are counted at the start; the others once something is said there."""
_TALKED = timedelta(days=60)
_TIMESTAMP = "timestamp="


def calls(message: Message, nick: str) -> bool:
    """Whether something is said to this person: by name, to all in a room, or in private."""
    if message.own or message.notice:
        return False
    return message.private or message.calls_all or fold(nick) in map(fold, message.mentions)


async def take_stock(irc: IRCTransport, talks: Talks) -> None:
    """Learn what is unread where, and with whom this person has talked."""
    await irc.request("CAP", "REQ", _CAP)
    for name in await _talked_with(irc):
        talks.of(name, private=True)
    found = [*talks.rooms(irc.channels), *talks.conversations()][:_LOOKED_AT]
    await asyncio.gather(*(_count(irc, talk) for talk in found))


async def _talked_with(irc: IRCTransport) -> list[str]:
    now = datetime.now(UTC)
    since, until = by_time(now - _TALKED), by_time(now + timedelta(days=1))
    lines = await irc.request("CHATHISTORY", "TARGETS", since, until, "100")
    named = [line.params[1] for line in lines if line.verb == "CHATHISTORY" and len(line.params) > 2]
    return [name for name in named if not is_channel(name)]


async def _count(irc: IRCTransport, talk: Conversation) -> None:
    for line in await irc.request(MARKREAD, talk.name):
        note(talk, line)
    if talk.read_to is None:
        # Whoever has never read anything here need not be told of all that was ever said.
        talk.read_to = datetime.now(UTC)
        return
    try:
        said = await irc.read(talk.name, talk.read_to)
    except (NoHistory, NotSent):
        return
    for message in said:
        talk.heard(message, calls(message, irc.nick))


def note(talk: Conversation, line: Line) -> None:
    """Take what MARKREAD says."""
    if line.verb == MARKREAD and len(line.params) > 1 and line.params[1].startswith(_TIMESTAMP):
        talk.read(datetime.fromisoformat(line.params[1].removeprefix(_TIMESTAMP)))


async def mark_read(irc: IRCTransport, talk: Conversation, to: datetime) -> None:
    """It is read up to then, on all devices."""
    talk.read(to)
    lines = await irc.request(MARKREAD, talk.name, by_time(to))
    refused = refusal(lines)
    if refused is not None:
        raise refused
