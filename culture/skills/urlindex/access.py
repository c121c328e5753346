"""Who may read the links of a channel."""

from culture.protocol.names import fold
from culture.protocol.numerics import Numeric
from culture.server.errors import Refused
from culture.server.network import Network
from culture.server.state import Channel, User
from culture.skills.urlindex.facts import OPEN, View

_CLOSED = frozenset("is")


def room(channel: Channel) -> float:
    """Where something is said that is said now: in the open, or behind the door of this very channel."""
    return channel.created if is_closed(channel) else OPEN


def is_closed(channel: Channel) -> bool:
    """Is it not for everybody to come in, or to know of?"""
    return channel.key is not None or not _CLOSED.isdisjoint(channel.flags)


def may_read(user: User, channel: Channel) -> bool:
    """Is the user a member, or could they become one?"""
    if user in channel.members:
        return True
    return not is_closed(channel) and (not channel.listed("b", user) or channel.listed("e", user))


def since(user: User, channel: Channel | None) -> float | None:
    """From when on the user may also read what was closed; None: never. 442 where they may not read at all."""
    if channel is None:
        return None
    if not may_read(user, channel):
        raise Refused(Numeric.ERR_NOTONCHANNEL, channel.name)
    return channel.created if user in channel.members else None


def view(network: Network, user: User) -> View:
    """All that the user may read."""
    hidden = (name for name, channel in network.channels.items() if not may_read(user, channel))
    return View(frozenset(hidden), {fold(channel.name): channel.created for channel in user.channels})
