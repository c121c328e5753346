"""Unread counts of one person: messages and mentions per room and private conversation.

Counts are kept in memory per connection. At the start they come from the server: the read marker (``MARKREAD``) of each
room says from when on to read the history. Later, every received message is counted and every ``MARKREAD`` line, also
one that another device of the person caused, removes what is older. A message may arrive twice (live and from the
history), so counted messages are kept by msgid and in order of time.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from culture.protocol.message import Message as Line
from culture.protocol.names import fold, is_channel
from culture.transport import IRCTransport, Message, NoHistory, NotSent
from culture.transport.history import by_time
from culture.transport.requests import refusal

_MAX_UNREAD = 500


@dataclass(frozen=True, slots=True)
class UnreadMessage:
    """A message that the person has not read; ``is_for_reader``: a mention or private message."""

    at: datetime
    is_for_reader: bool
    id: str = ""


@dataclass(slots=True)
class Conversation:
    """A room or a private conversation of a person, with its unread messages."""

    name: str
    private: bool
    read_to: datetime | None = None
    """Time of the read marker: everything up to it was read on some device."""
    last_message_at: datetime | None = None
    unread_messages: deque[UnreadMessage] = field(default_factory=lambda: deque(maxlen=_MAX_UNREAD))

    @property
    def unread(self) -> int:
        """Number of unread messages."""
        return len(self.unread_messages)

    @property
    def mentions(self) -> int:
        """Number of unread messages that mention the person or are private."""
        return sum(each.is_for_reader for each in self.unread_messages)

    def add(self, message: Message, is_for_reader: bool) -> None:
        """Count a message as unread; a message of the person itself marks all before it as read.

        ``is_for_reader``: whether the message mentions the person or is private.
        """
        if self.last_message_at is None or message.timestamp > self.last_message_at:
            self.last_message_at = message.timestamp
        if message.own:
            self.mark_read(message.timestamp)
        elif not message.notice and (self.read_to is None or message.timestamp > self.read_to):
            self._insert(UnreadMessage(message.timestamp, is_for_reader, message.msgid))

    def _insert(self, new: UnreadMessage) -> None:
        """Insert an unread message in order of time, unless it is there already.

        A message may come twice: live and from the history.
        """
        if all(each.id != new.id for each in self.unread_messages):
            self.unread_messages.append(new)
            if len(self.unread_messages) > 1 and self.unread_messages[-2].at > new.at:
                self.unread_messages = deque(sorted(self.unread_messages, key=lambda each: each.at), maxlen=_MAX_UNREAD)

    def mark_read(self, to: datetime) -> None:
        """Move the conversation's read marker forward to the time ``to``; never move it back."""
        if self.read_to is None or to > self.read_to:
            self.read_to = to
        while self.unread_messages and self.unread_messages[0].at <= self.read_to:
            self.unread_messages.popleft()


class Conversations:
    """All rooms and private conversations of one person, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, Conversation] = {}

    def get_or_add(self, name: str, private: bool) -> Conversation:
        """Return the conversation with this name (channel or nick); add it if it is new.

        ``private``: whether it is a private conversation, for a new one.
        """
        return self._by_name.setdefault(fold(name), Conversation(name, private))

    def get(self, name: str) -> Conversation | None:
        """Return the conversation with this name (channel or nick), or None."""
        return self._by_name.get(fold(name))

    @property
    def mentions(self) -> int:
        """Number of unread messages, in all conversations, that mention the person or are private."""
        return sum(each.mentions for each in self._by_name.values())

    def rooms(self, channels: list[str]) -> list[Conversation]:
        """Return the conversations of ``channels``, sorted by name; those that are new are added."""
        return sorted((self.get_or_add(name, private=False) for name in channels), key=lambda each: fold(each.name))

    def private(self) -> list[Conversation]:
        """Return the private conversations, the one with the newest message first."""
        never = datetime.min.replace(tzinfo=UTC)
        found = [each for each in self._by_name.values() if each.private]
        return sorted(found, key=lambda each: each.last_message_at or never, reverse=True)


MARKREAD = "MARKREAD"
_CAP = "draft/read-marker"
_COUNTED = 40
"""Number of rooms whose history is read at the start; the others are counted from their next message on."""
_LOOK_BACK = timedelta(days=60)
_TIMESTAMP = "timestamp="


def is_addressed_to(message: Message, nick: str) -> bool:
    """Return whether somebody else's message mentions ``nick`` or everybody, or is private."""
    if message.own or message.notice:
        return False
    return message.private or message.calls_all or fold(nick) in map(fold, message.mentions)


async def load_unread(irc: IRCTransport, conversations: Conversations) -> None:
    """Load the unread messages of all rooms and private conversations from the server.

    They are stored in ``conversations``, to which private conversations of the last 60 days are added.
    """
    await irc.request("CAP", "REQ", _CAP)
    for name in await _correspondents(irc):
        conversations.get_or_add(name, private=True)
    counted = [*conversations.rooms(irc.channels), *conversations.private()][:_COUNTED]
    await asyncio.gather(*(_count(irc, each) for each in counted))


async def _correspondents(irc: IRCTransport) -> list[str]:
    now = datetime.now(UTC)
    since, until = by_time(now - _LOOK_BACK), by_time(now + timedelta(days=1))
    lines = await irc.request("CHATHISTORY", "TARGETS", since, until, "100")
    targets = [line.params[1] for line in lines if line.verb == "CHATHISTORY" and len(line.params) > 2]
    return [name for name in targets if not is_channel(name)]


async def _count(irc: IRCTransport, conversation: Conversation) -> None:
    for line in await irc.request(MARKREAD, conversation.name):
        apply_marker(conversation, line)
    if conversation.read_to is None:
        # Without a read marker nothing counts as unread: it would be the whole history.
        conversation.read_to = datetime.now(UTC)
        return
    try:
        messages = await irc.read(conversation.name, conversation.read_to)
    except (NoHistory, NotSent):
        return
    for message in messages:
        conversation.add(message, is_addressed_to(message, irc.nick))


def apply_marker(conversation: Conversation, line: Line) -> None:
    """Set a conversation's read marker from a ``MARKREAD`` line; do nothing for other lines."""
    if line.verb == MARKREAD and len(line.params) > 1 and line.params[1].startswith(_TIMESTAMP):
        conversation.mark_read(datetime.fromisoformat(line.params[1].removeprefix(_TIMESTAMP)))


async def mark_read(irc: IRCTransport, conversation: Conversation, to: datetime) -> None:
    """Mark a conversation as read up to the time ``to``, here and on the person's other devices.

    ``NotSent`` is raised if the server refuses.
    """
    conversation.mark_read(to)
    lines = await irc.request(MARKREAD, conversation.name, by_time(to))
    error = refusal(lines)
    if error is not None:
        raise error
