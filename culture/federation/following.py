"""Which events of other servers are news here."""

from dataclasses import dataclass

from culture.protocol.names import is_channel
from culture.server.core.ids import EventId
from culture.server.events import ChannelRenamed, Event, Kicked, MetadataSet, ModeSet, TopicSet, Walloped

_REMEMBERED = 20_000


@dataclass(slots=True)
class Known:
    """What is known of another server's users: up to which of its events, and which peer tells us of them."""

    name: str
    epoch: str
    version: int
    via: str
    skips: int = 0
    """Events up to this one are known already, from another peer that was ahead."""


class Heard:
    """The last changes of channels, so that each is taken once."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str, int], None] = {}

    def is_new(self, stamp: EventId) -> bool:
        """Was it not heard before?"""
        id = stamp[:3]
        if id in self._ids:
            return False
        self._ids[id] = None
        if len(self._ids) > _REMEMBERED:
            del self._ids[next(iter(self._ids))]
        return True


def concerns_channel(event: Event) -> bool:
    """Is it about a channel, or all, and not about a user of the server that says it?"""
    if isinstance(event, MetadataSet):
        return is_channel(event.target)
    return isinstance(event, ModeSet | TopicSet | Kicked | ChannelRenamed | Walloped)
