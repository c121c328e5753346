"""Who may read what of a channel's history (decision 7)."""

from culture.protocol.names import fold
from culture.protocol.numerics import Numeric
from culture.server.context import Context
from culture.server.errors import Refused
from culture.server.events import Joined
from culture.server.skill import Host, hook
from culture.server.state import Channel, User, reaches
from culture.skills.history.entry import MICROSECONDS
from culture.skills.history.store import View


class Access:
    """Members read everything of their channel; everybody else what was said while everybody could be there."""

    def __init__(self, host: Host) -> None:
        self._network = host.network
        self._since: dict[str, float] = {}

    @hook(Joined)
    def joined(self, event: Joined) -> None:
        """Who comes first into a channel that nobody was in has no claim on what was said behind closed doors."""
        channel = self._network.channel(event.channel)
        if channel is not None and len(channel.members) == 1 and not channel.is_registered:
            if channel.standing:
                self._since[fold(channel.name)] = event.id.at
            else:
                self._since.pop(fold(channel.name), None)

    def channel(self, ctx: Context, name: str) -> View:
        """What the asker may read by HISTORY, else 442. Of a channel that is not there, what was said in the open."""
        channel = self._network.channel(name)
        if channel is None:
            return View(fold(name))
        if ctx.user in channel.members:
            return self.member(channel, ctx.user)
        if not channel.is_open or (channel.listed("b", ctx.user) and not channel.listed("e", ctx.user)):
            raise Refused(Numeric.ERR_NOTONCHANNEL, channel.name)
        return View(fold(channel.name))

    def member(self, channel: Channel, user: User, events: bool = False) -> View:
        """What a member may read."""
        held = channel.members[user]
        ranks = ("", *(rank for rank in "@+" if reaches(held, rank)))
        place = fold(channel.name)
        closed_since = int(max(channel.created, self._since.get(place, 0.0)) * MICROSECONDS)
        return View(place, ranks, closed_since, events=events)
