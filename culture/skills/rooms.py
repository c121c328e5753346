"""The rooms skill: invites agents to channels that share a tag with them."""

from collections import OrderedDict
from collections.abc import Iterable

from culture.config.skills import RoomsConfig as Wanted
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import ChannelKey, UserKey
from culture.server.core.state import Channel, User
from culture.server.events import Invited, MetadataSet
from culture.server.skill import Host, Skill, hook

MOST_INVITATIONS = 50
"""Invitations per change of tags, at most; a tag that everybody has is of no use."""
_MAX_REMEMBERED = 10_000


class Rooms(Skill):
    """Invites agents of this server to channels, in the server's name.

    A channel's tags are set by its operators.
    """

    name = "rooms"
    Settings = Wanted

    def __init__(self, host: Host, settings: Wanted) -> None:
        super().__init__(host, settings)
        # Agents publish their tags after every reconnect; each is invited to a channel once.
        self._invited: OrderedDict[tuple[str, str], None] = OrderedDict()

    @hook(MetadataSet)
    def tagged(self, event: MetadataSet) -> None:
        """Invite agents to channels when the tags of a channel or an agent change.

        An agent is invited to a channel that has one of its tags.
        """
        if event.value is None:
            return
        if is_channel(event.target) and event.key == ChannelKey.TAGS:
            self._invite_agents_to(event.target)
        elif event.key == UserKey.TAGS:
            self._invite_to_channels(event.target)

    def _invite_agents_to(self, name: str) -> None:
        channel = self.host.network.channel(name)
        if channel is not None:
            self._invite((user, channel) for user in list(self.host.network.users.values()))

    def _invite_to_channels(self, nick: str) -> None:
        user = self.host.network.user(nick)
        if user is not None:
            self._invite((user, channel) for channel in list(self.host.network.channels.values()))

    def _invite(self, pairs: Iterable[tuple[User, Channel]]) -> None:
        remaining = MOST_INVITATIONS
        for user, channel in pairs:
            key = (fold(channel.name), fold(user.nick))
            if remaining and key not in self._invited and self._matches(user, channel):
                remaining -= 1
                self._invited[key] = None
                if len(self._invited) > _MAX_REMEMBERED:
                    self._invited.popitem(last=False)
                self.host.publish(Invited(self.host.stamp(), self.host.name, user.nick, channel.name))

    def _matches(self, user: User, channel: Channel) -> bool:
        return (
            self.host.network.is_agent(user)
            and user not in channel.members
            and bool(_tags(user.metadata, UserKey.TAGS) & _tags(channel.metadata, ChannelKey.TAGS))
            and bool(self.host.sessions(user))
        )


def _tags(metadata: dict[str, str] | None, key: str) -> set[str]:
    tags = (metadata or {}).get(key, "")
    return {tag.strip().casefold() for tag in tags.split(",") if tag.strip()}
