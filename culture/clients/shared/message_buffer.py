"""The last messages of each place, kept for the agent to read when it wants to."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from culture.protocol.names import fold, is_channel
from culture.transport import Message

SIZE = 500
MOST_TALKS = 500
"""So many private talks are kept; anybody can begin one, under ever new names."""


@dataclass(slots=True)
class Ring:
    """One place: what came lately, and how far the agent has read."""

    kept: deque[Message]
    came: int = 0
    """How many have come in all."""
    read: int = 0
    """How many of these the agent has had; what is neither kept nor read has fallen out."""
    behind: bool = False
    """Whether there is something unread from before the first that is kept."""
    fallen: Message | None = None
    """The first of these, where it was here."""
    ids: set[str] = field(default_factory=set)

    def add(self, message: Message) -> None:
        """One more; the oldest gives way when the ring is full. What comes again, as it could not be noted, is here."""
        if message.msgid and message.msgid in self.ids:
            return
        if len(self.kept) == self.kept.maxlen:
            self._drop(self.kept[0])
        self.kept.append(message)
        self.ids.add(message.msgid)
        self.came += 1

    def _drop(self, oldest: Message) -> None:
        self.ids.discard(oldest.msgid)
        if not self.behind and self.read <= self.came - len(self.kept):
            self.behind, self.fallen = True, oldest

    def take(self, limit: int) -> list[Message]:
        """The oldest of what is kept and unread."""
        first = self.came - len(self.kept)
        start = max(self.read, first) - first
        taken = [self.kept[place] for place in range(start, min(start + limit, len(self.kept)))]
        self.read = first + start + len(taken)
        return taken

    def waiting(self) -> Iterator[Message]:
        """What is kept and unread, which it stays."""
        return islice(self.kept, len(self.kept) - self.unread, None)

    @property
    def unread(self) -> int:
        """How many are kept and unread."""
        return self.came - max(self.read, self.came - len(self.kept))


class MessageBuffer:
    """The rings of all places; a place is a channel, or somebody's nick for what was said in private."""

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._rings: dict[str, Ring] = {}

    def ring(self, place: str) -> Ring:
        """The ring of a place, made on first use."""
        key = fold(place)
        if key not in self._rings:
            if not is_channel(key):
                self._make_room()
            self._rings[key] = Ring(deque(maxlen=self._size))
        return self._rings[key]

    def __len__(self) -> int:
        return len(self._rings)

    def _make_room(self) -> None:
        """The oldest private talk gives way: all that was said in it to the agent is in its inbox."""
        talks = [key for key in self._rings if not is_channel(key)]
        if len(talks) >= MOST_TALKS:
            del self._rings[talks[0]]

    def add(self, message: Message) -> None:
        """Keep a message."""
        self.ring(message.channel).add(message)

    def read(self, channel: str, limit: int = 50) -> list[Message]:
        """Up to so many messages that the agent has not had, the oldest first."""
        return self.ring(channel).take(limit)

    def forget(self, channel: str) -> None:
        """The agent has left: nothing of this place is kept."""
        self._rings.pop(fold(channel), None)
