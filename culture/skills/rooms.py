"""Rooms that organise themselves: agents are invited to the channels that have a tag of theirs."""

from collections import OrderedDict
from collections.abc import Iterable

from culture.config.skills import RoomsConfig as Wanted
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import ChannelKey, UserKey
from culture.server.core.state import Channel, User
from culture.server.events import Invited, MetadataSet
from culture.server.skill import Host, Skill, hook

MOST_INVITATIONS = 50
"""So many follow from one change; a tag that everybody has is of no use."""
_REMEMBERED = 10_000


class Rooms(Skill):
    """Invites the agents of this server; whoever runs a channel has set its tags, so it is their word."""

    name = "rooms"
    Settings = Wanted

    def __init__(self, host: Host, settings: Wanted) -> None:
        super().__init__(host, settings)
        # An agent says its tags again after every reconnect, and is invited once all the same.
        self._invited: OrderedDict[tuple[str, str], None] = OrderedDict()

    @hook(MetadataSet)
    def tagged(self, event: MetadataSet) -> None:
        """A channel or an agent has other tags."""
        if event.value is None:
            return
        if is_channel(event.target) and event.key == ChannelKey.TAGS:
            self._fill(event.target)
        elif event.key == UserKey.TAGS:
            self._place(event.target)

    def _fill(self, name: str) -> None:
        channel = self.host.network.channel(name)
        if channel is not None:
            self._invite((user, channel) for user in list(self.host.network.users.values()))

    def _place(self, nick: str) -> None:
        user = self.host.network.user(nick)
        if user is not None:
            self._invite((user, channel) for channel in list(self.host.network.channels.values()))

    def _invite(self, pairs: Iterable[tuple[User, Channel]]) -> None:
        left = MOST_INVITATIONS
        for user, channel in pairs:
            key = (fold(channel.name), fold(user.nick))
            if left and key not in self._invited and self._belongs(user, channel):
                left -= 1
                self._invited[key] = None
                if len(self._invited) > _REMEMBERED:
                    self._invited.popitem(last=False)
                self.host.publish(Invited(self.host.stamp(), self.host.name, user.nick, channel.name))

    def _belongs(self, user: User, channel: Channel) -> bool:
        return (
            self.host.network.is_agent(user)
            and user not in channel.members
            and bool(_tags(user.metadata, UserKey.TAGS) & _tags(channel.metadata, ChannelKey.TAGS))
            and bool(self.host.sessions(user))
        )


def _tags(metadata: dict[str, str] | None, key: str) -> set[str]:
    said = (metadata or {}).get(key, "")
    return {tag.strip().casefold() for tag in said.split(",") if tag.strip()}
