"""The rooms of a person and their private conversations: what is unread in each, and what calls them there."""

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime

from culture.protocol.names import fold
from culture.transport import Message

_MOST_UNREAD = 500


@dataclass(frozen=True, slots=True)
class Unread:
    """A message that was not read yet."""

    at: datetime
    calls: bool
    id: str = ""


@dataclass(slots=True)
class Talk:
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
        self._talks: dict[str, Talk] = {}

    def of(self, name: str, private: bool) -> Talk:
        """The one of that name, new or not."""
        return self._talks.setdefault(fold(name), Talk(name, private))

    def known(self, name: str) -> Talk | None:
        """The one of that name."""
        return self._talks.get(fold(name))

    @property
    def calls(self) -> int:
        """How many unread messages are for this person."""
        return sum(talk.calls for talk in self._talks.values())

    def rooms(self, channels: list[str]) -> list[Talk]:
        """Those of these channels, by name."""
        return sorted((self.of(name, private=False) for name in channels), key=lambda talk: fold(talk.name))

    def conversations(self) -> list[Talk]:
        """Those in private, the newest first."""
        early = datetime.min.replace(tzinfo=UTC)
        found = [talk for talk in self._talks.values() if talk.private]
        return sorted(found, key=lambda talk: talk.last or early, reverse=True)
