"""What may cross a link, and what a peer may say of whom (decision 9)."""

from typing import TYPE_CHECKING

from culture.config.links import LinkConfig as Settings
from culture.federation.codec.fields import Garbled
from culture.protocol.message import Message
from culture.protocol.names import fold, is_channel, short_name, valid_local_nick
from culture.protocol.vocabulary import ChannelMode
from culture.server.core.network import Network
from culture.server.core.state import Channel, User
from culture.server.events import Arrived, ChannelRenamed, Event, MetadataSet, Renamed, nick_of

if TYPE_CHECKING:
    from culture.federation.link import Link
    from culture.federation.mesh import Mesh

_LONGEST_NICK = 64
MOST_USERS, MOST_CHANNELS = 100_000, 100_000
"""So many there may be: what a peer makes up must not fill the memory."""
SHARED_TAG = "shared"
"""On a message: the only servers it was said for."""
EVERYWHERE = "*"
"""In place of a channel: what every server may know that has a say."""
UNVOUCHED_TAG = "unvouched"
"""On a message or a ROSTER: it came over a link whose users have no say."""
_SHARED = f"{SHARED_TAG}="
_LOCAL = ChannelMode.LOCAL.value  # an enum's member takes its time to be looked up


class NotTheirs(Exception):
    """What a peer says of a server that we hear ourselves: passed over, since it may be an echo."""


def owner_of(nick: str) -> str:
    """The server whose user has this nick."""
    return fold(nick).partition("-")[0]


def is_restricted(settings: Settings) -> bool:
    """Do only the named channels cross?"""
    return settings.trust == "restricted"


def has_authority(settings: Settings) -> bool:
    """Do the users behind the link have a say here?"""
    return settings.trust == "full"


def crosses(channel: Channel | None, settings: Settings) -> bool:
    """May what concerns this channel go over the link?"""
    if channel is None:
        return not is_restricted(settings)
    if _LOCAL in channel.flags:
        return False
    if is_restricted(settings) and fold(channel.name) not in map(fold, settings.channels):
        return False
    return channel.shared is None or settings.short_name in channel.shared


def crosses_by_name(network: Network, name: str, settings: Settings) -> bool:
    """The same for a channel that may not be there any more."""
    if name == EVERYWHERE:
        return has_authority(settings)
    channel = network.channel(name) or network.bounded.get(fold(name))
    if channel is not None:
        return crosses(channel, settings)
    return not is_restricted(settings) or fold(name) in map(fold, settings.channels)


def place_of(event: Event) -> str | None:
    """The channel that decides who may know of an event; a renamed one has its new name."""
    if isinstance(event, ChannelRenamed):
        return event.new
    name = getattr(event, "channel", None) or getattr(event, "target", None)
    return name if isinstance(name, str) and is_channel(name) else None


def message_crosses(network: Network, name: str, data: str, settings: Settings) -> bool:
    """May a kept message go over the link: by what the channel is today, and by what it was when it was said?"""
    if _SHARED in data and not _is_said_for(data, settings.short_name):
        return False
    return crosses_by_name(network, name, settings)


def _is_said_for(data: str, server: str) -> bool:
    tags = data[1:].partition(" ")[0].split(";") if data.startswith("@") else []
    said_for = next((tag for tag in tags if tag.startswith(_SHARED)), None)
    return said_for is None or server in said_for.partition("=")[2].split(",")


def is_local(network: Network, target: str) -> bool:
    """Is this a channel that never leaves the server? What is said there is in no log of links."""
    channel = network.channel(target)
    return channel is not None and _LOCAL in channel.flags


def for_whom(network: Network, target: str, line: Message) -> Message:
    """The line with the only servers it is meant for, where the channel is shared with some alone."""
    channel = network.channel(target)
    if channel is None or channel.shared is None:
        return line
    return line._replace(tags={**line.tags, SHARED_TAG: ",".join(channel.shared)})


def is_vouched(network: Network, settings: Settings, server: str, line: Message | None = None) -> bool:
    """Does somebody with a say here stand for what this server's users are?"""
    if not has_authority(settings) or (line is not None and UNVOUCHED_TAG in line.tags):
        return False
    return server not in network.unvouched and server not in network.distrusted


def unvouched(data: str) -> str:
    """The line, marked for those whom it goes on to."""
    return data if f"{UNVOUCHED_TAG}=" in data.partition(" ")[0] else f"@{UNVOUCHED_TAG}=1;{data[1:]}"


def may_write(network: Network, source: str, target: str, settings: Settings) -> bool:
    """May a private message go over the link? Over a restricted one only between members of a channel that crosses."""
    if not is_restricted(settings):
        return True
    one, other = network.user(nick_of(source)), network.user(target)
    if one is None or other is None:
        return False
    return any(crosses(channel, settings) for channel in one.channels if channel in other.channels)


def is_shown(user: User, settings: Settings) -> bool:
    """Is the peer told of this user?"""
    return not is_restricted(settings) or any(crosses(channel, settings) for channel in user.channels)


def check_room(users: int, channels: int) -> None:
    """Is there room for one more, where there are so many? Raises Garbled."""
    if users >= MOST_USERS or channels >= MOST_CHANNELS:
        raise Garbled("more than a mesh has")


def check_origin(mesh: "Mesh", link: "Link", server: str) -> None:
    """A peer does not speak for us, nor for a server that is linked to us itself or that a better peer speaks for.

    One that has no say speaks for none of those that have one while their own link is down either: it could say
    anything in the names of their users, and take the ids of what they say next.
    """
    if server == mesh.own or (server != link.peer and server in mesh.links):
        raise NotTheirs
    if server != link.peer and not has_authority(link.trust):
        settings = mesh.dialler.wanted.get(server)
        if is_vouched_for(mesh, server) or (settings is not None and has_authority(settings)):
            raise NotTheirs


def is_vouched_for(mesh: "Mesh", server: str) -> bool:
    """Is the server reached over a peer that has a say, and stands for it?"""
    network = mesh.host.network
    way = network.servers.get(server)
    via = mesh.links.get(way.via) if way is not None else None
    return via is not None and is_vouched(network, via.link.trust, server)


def check_source(event: Event) -> None:
    """What a server says was done, its own users did, or the server itself; and to its own users alone."""
    origin = event.id.origin
    if isinstance(event, Arrived):
        _check_user(event.nick, origin)
        if short_name(event.server) != origin:
            raise Garbled(f"{event.nick} is on {event.server}")
        return
    source = nick_of(event.source)  # type: ignore[union-attr]
    if owner_of(source) != origin and short_name(source) != origin:
        raise Garbled(f"{source} is no user of {origin}")
    if isinstance(event, Renamed):
        _check_user(event.new, origin)
    if isinstance(event, MetadataSet) and not is_channel(event.target):
        _check_user(event.target, origin)


def _check_user(nick: str, origin: str) -> None:
    if owner_of(nick) != origin or not valid_local_nick(nick, origin, _LONGEST_NICK):
        raise Garbled(f"{nick} is no nick of {origin}")
