"""What one user is shown of others: invisible users (+i), secret channels (+s), and the nearest of the rest."""

from culture.protocol.names import nearest
from culture.protocol.numerics import Numeric
from culture.server.core.network import Network
from culture.server.core.state import Channel, User


def is_operator(user: User) -> bool:
    """Is this an operator of the server, from whom nothing is hidden?"""
    return "o" in user.modes


def sees_channel(asker: User, channel: Channel) -> bool:
    """May the asker know that the channel exists?"""
    return "s" not in channel.flags or asker in channel.members or is_operator(asker)


def sees_user(asker: User, other: User) -> bool:
    """May the asker come across the other without having named them?"""
    return (
        "i" not in other.modes or other is asker or not asker.channels.isdisjoint(other.channels) or is_operator(asker)
    )


def sees_member(asker: User, other: User, channel: Channel) -> bool:
    """May the asker know that the other is in the channel?"""
    if asker in channel.members or other is asker or is_operator(asker):
        return True
    return "s" not in channel.flags and "i" not in other.modes


def no_such_nick(network: Network, asker: User, nick: str) -> str:
    """The text of 401, with the nearest nick that the asker may see."""
    seen = (user.nick for user in network.users.values() if sees_user(asker, user))
    return hinted(Numeric.ERR_NOSUCHNICK.text, nearest(nick, seen))


def no_such_channel(network: Network, asker: User, name: str) -> str:
    """The text of 403, with the nearest channel that the asker may see."""
    seen = (channel.name for channel in network.channels.values() if sees_channel(asker, channel))
    return hinted(Numeric.ERR_NOSUCHCHANNEL.text, nearest(name, seen))


def hinted(text: str, meant: str | None) -> str:
    """The text with what was probably meant."""
    return text if meant is None else f"{text}; did you mean {meant}?"
