"""What may cross a link, and what a peer may say of whom (decision 9)."""

from culture.config.links import Link as Settings
from culture.protocol.names import fold, short_name
from culture.protocol.vocabulary import ChannelMode
from culture.server.network import Network
from culture.server.state import Channel


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
