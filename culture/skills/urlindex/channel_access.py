"""Who may read the links of a channel."""

from culture.protocol.names import fold
from culture.protocol.numerics import Numeric
from culture.server.core.state import Channel, User
from culture.server.errors import Refused
from culture.server.events import ChannelRenamed, Joined
from culture.server.skill import Host, hook
from culture.skills.urlindex.facts import OPEN, ReadableChannels

_GONE = 100  # channels that are no more, before they are forgotten


class ChannelAccess:
    """Knows since when a channel is what it is: what was said behind its closed door is for those who came since."""

    def __init__(self, host: Host) -> None:
        self._network = host.network
        self._now = host.now
        self._entered: dict[str, float] = {}

    @hook(Joined)
    def enter(self, event: Joined) -> None:
        """Whoever comes first into a channel finds nothing of those who were there before.

        When that was we know ourselves: other servers may say that the channel is older.
        """
        channel = self._network.channel(event.channel)
        if channel is not None and not channel.is_registered and len(channel.members) == 1:
            self._entered[fold(channel.name)] = self._now()
            self._tidy()

    @hook(ChannelRenamed)
    def renamed(self, event: ChannelRenamed) -> None:
        """The same channel under another name."""
        entered = self._entered.pop(fold(event.channel), None)
        self._entered.pop(fold(event.new), None)
        if entered is not None:
            self._entered[fold(event.new)] = entered

    def _tidy(self) -> None:
        channels = self._network.channels
        if len(self._entered) > 2 * len(channels) + _GONE:
            self._entered = {name: at for name, at in self._entered.items() if name in channels}

    def room(self, channel: Channel | None, closed: bool | None) -> float | None:
        """Where a message was said: in the open, or behind the door of this very channel; None where nobody can tell.

        ``closed`` is what the server of its sender says of that; the channel may be another one by now, or none.
        """
        if closed is None and channel is not None:
            closed = not channel.is_open
        if closed is False:
            return OPEN
        return None if channel is None else self._since(channel)

    def since(self, user: User, name: str) -> float | None:
        """From when on the user may also read what was closed; None: never. 442 where they may not read at all."""
        channel = self._network.channel(name)
        if channel is None:
            return None
        if not may_read(user, channel):
            raise Refused(Numeric.ERR_NOTONCHANNEL, channel.name)
        return self._since(channel) if user in channel.members else None

    def view(self, user: User) -> ReadableChannels:
        """All that the user may read."""
        # There may be many channels: few of them need a closer look.
        doubtful = ((name, channel) for name, channel in self._network.channels.items() if _may_be_hidden(channel))
        hidden = (name for name, channel in doubtful if not may_read(user, channel))
        return ReadableChannels(
            frozenset(hidden), {fold(channel.name): self._since(channel) for channel in user.channels}
        )

    def _since(self, channel: Channel) -> float:
        return max(channel.created, self._entered.get(fold(channel.name), OPEN))


def _may_be_hidden(channel: Channel) -> bool:
    return not channel.is_open or bool(channel.lists.get("b"))


def may_read(user: User, channel: Channel) -> bool:
    """Is the user a member, or could they become one?"""
    if user in channel.members:
        return True
    return channel.is_open and (not channel.listed("b", user) or channel.listed("e", user))
