"""Access to the links of a channel.

A link that was shared while anybody could join is readable by anybody who may join now. A link that was shared in a
closed channel (+i, +k, +s) is readable by members only, and only if the channel still is the same one: not if it was
empty in between and created anew. So the index stores the channel's creation time with such a link, and compares it
here.
"""

from culture.protocol.names import fold
from culture.protocol.numerics import Numeric
from culture.server.core.state import Channel, User
from culture.server.errors import Refused
from culture.server.events import ChannelRenamed, Joined
from culture.server.skill import Host, hook
from culture.skills.urlindex.facts import OPEN, ReadableChannels

_GONE = 100  # ended channels that may be remembered


class ChannelAccess:
    """Records when each channel was created, and decides by that which links a user may read."""

    def __init__(self, host: Host) -> None:
        self._network = host.network
        self._now = host.now
        self._founded: dict[str, float] = {}

    @hook(Joined)
    def enter(self, event: Joined) -> None:
        """Record the creation time of a channel when its first member joins.

        Links that were shared earlier, while the channel was closed, are not for that member. The time is that of our
        own clock: another server may say that the channel is older.
        """
        channel = self._network.channel(event.channel)
        if channel is not None and not channel.is_registered and len(channel.members) == 1:
            self._founded[fold(channel.name)] = self._now()
            self._tidy()

    @hook(ChannelRenamed)
    def renamed(self, event: ChannelRenamed) -> None:
        """Keep the creation time of a channel under its new name."""
        founded = self._founded.pop(fold(event.channel), None)
        self._founded.pop(fold(event.new), None)
        if founded is not None:
            self._founded[fold(event.new)] = founded

    def _tidy(self) -> None:
        channels = self._network.channels
        if len(self._founded) > 2 * len(channels) + _GONE:
            self._founded = {name: at for name, at in self._founded.items() if name in channels}

    def room(self, channel: Channel | None, closed: bool | None) -> float | None:
        """Return the mark to store with a link of a channel: who may read the link depends on it.

        The mark is ``OPEN`` if the channel was open, else the channel's creation time; None if the channel was closed
        and is gone. ``closed``: what the sender's server said of the channel when the link was sent; None: unknown.
        """
        if closed is None and channel is not None:
            closed = not channel.is_open
        if closed is False:
            return OPEN
        return None if channel is None else self._since(channel)

    def since(self, user: User, name: str) -> float | None:
        """Return the channel's creation time if the user may read links shared while it was closed.

        The user may read those shared since that time. None: only links that were shared while the channel was open.
        ``Refused`` if the user may not read the channel ``name`` at all.
        """
        channel = self._network.channel(name)
        if channel is None:
            return None
        if not may_read(user, channel):
            raise Refused(Numeric.ERR_NOTONCHANNEL, channel.name)
        return self._since(channel) if user in channel.members else None

    def view(self, user: User) -> ReadableChannels:
        """Return the channels hidden from the user, and the creation times of the user's channels."""
        # There may be many channels, and few of them can be hidden.
        doubtful = ((name, channel) for name, channel in self._network.channels.items() if _may_be_hidden(channel))
        hidden = (name for name, channel in doubtful if not may_read(user, channel))
        return ReadableChannels(
            frozenset(hidden), {fold(channel.name): self._since(channel) for channel in user.channels}
        )

    def _since(self, channel: Channel) -> float:
        return max(channel.created, self._founded.get(fold(channel.name), OPEN))


def _may_be_hidden(channel: Channel) -> bool:
    return not channel.is_open or bool(channel.lists.get("b"))


def may_read(user: User, channel: Channel) -> bool:
    """Return whether the user is a member of the channel or may join it."""
    if user in channel.members:
        return True
    return channel.is_open and (not channel.listed("b", user) or channel.listed("e", user))
