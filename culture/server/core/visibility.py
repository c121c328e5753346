"""Rules for what a user may see: invisible users (+i), secret channels (+s); nearest names."""

from culture.protocol.names import nearest
from culture.protocol.numerics import Numeric
from culture.server.core.network import Network
from culture.server.core.state import Channel, User


def is_operator(user: User) -> bool:
    """Return whether the user is an IRC operator, who sees everything."""
    return "o" in user.modes


def sees_channel(asker: User, channel: Channel) -> bool:
    """Return whether the asker may know that the channel exists."""
    return "s" not in channel.flags or asker in channel.members or is_operator(asker)


def sees_user(asker: User, other: User) -> bool:
    """Return whether a search by the asker may find the other user; naming the nick always does."""
    return (
        "i" not in other.modes
        or other is asker
        or not asker.channels.keys().isdisjoint(other.channels)
        or is_operator(asker)
    )


def sees_member(asker: User, other: User, channel: Channel) -> bool:
    """Return whether the asker may know that the other user is in the channel."""
    if asker in channel.members or other is asker or is_operator(asker):
        return True
    return "s" not in channel.flags and "i" not in other.modes


def no_such_nick(network: Network, asker: User, nick: str) -> str:
    """Return the text of 401 for an unknown nick, with the most similar nick visible to asker."""
    names = (user.nick for user in network.users.values() if sees_user(asker, user))
    return hinted(Numeric.ERR_NOSUCHNICK.text, nearest(nick, names))


def no_such_channel(network: Network, asker: User, name: str) -> str:
    """Return the text of 403 for an unknown name, with the most similar channel visible.

    ``asker``: the user to whom it has to be visible.
    """
    names = (channel.name for channel in network.channels.values() if sees_channel(asker, channel))
    return hinted(Numeric.ERR_NOSUCHCHANNEL.text, nearest(name, names))


def hinted(text: str, suggestion: str | None) -> str:
    """Return the text with "did you mean" and the suggestion; the text alone if that is None."""
    return text if suggestion is None else f"{text}; did you mean {suggestion}?"
