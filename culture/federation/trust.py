"""What may cross a link, and what a peer may say of whom (decision 9)."""

from typing import TYPE_CHECKING

from culture.config.links import Link as Settings
from culture.federation.codec import Garbled
from culture.protocol.names import fold, short_name
from culture.protocol.vocabulary import ChannelMode
from culture.server.events import Arrived, Event, nick_of
from culture.server.network import Network
from culture.server.state import Channel

if TYPE_CHECKING:
    from culture.federation.link import Link
    from culture.federation.mesh import Mesh


class NotTheirs(Exception):
    """What a peer says of a server that we hear ourselves: passed over, since it may be an echo."""


def owner_of(nick: str) -> str:
    """The server whose user has this nick."""
    return fold(nick).partition("-")[0]


def crosses(channel: Channel | None, settings: Settings) -> bool:
    """May what concerns this channel go over the link?"""
    if channel is None:
        return settings.trust != "restricted"
    if ChannelMode.LOCAL in channel.flags:
        return False
    if settings.trust == "restricted" and fold(channel.name) not in map(fold, settings.channels):
        return False
    return channel.shared is None or settings.short_name in map(short_name, channel.shared)


def crosses_by_name(network: Network, name: str, settings: Settings) -> bool:
    """The same for a channel that may not be there any more."""
    channel = network.channel(name)
    if channel is not None:
        return crosses(channel, settings)
    return settings.trust != "restricted" or fold(name) in map(fold, settings.channels)


def check_origin(mesh: "Mesh", link: "Link", server: str) -> None:
    """A peer does not speak for us, nor for a server that is linked to us itself."""
    if server == mesh.own or (server != link.peer and server in mesh.links):
        raise NotTheirs


def check_source(event: Event) -> None:
    """What a server says was done, its own users did, or the server itself."""
    source = event.nick if isinstance(event, Arrived) else nick_of(event.source)  # type: ignore[union-attr]
    if owner_of(source) != event.id.origin and short_name(source) != event.id.origin:
        raise Garbled(f"{source} is no user of {event.id.origin}")
