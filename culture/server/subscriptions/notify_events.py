"""Events that also concern others: away on join, invite-notify, RENAME for older clients."""

from culture.protocol.message import Message
from culture.server.channels.join_reply import show_join
from culture.server.context import Context, ServerParts
from culture.server.core.encode import wire
from culture.server.core.render import Flavour
from culture.server.events import AwaySet, ChannelRenamed, Invited, Joined, nick_of


class EventNotices:
    """Sends some events to more sessions than the router does.

    They are AWAY on a join, invitations, and the rename of a channel.
    """

    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        self._network = parts.network
        self._router = parts.router
        parts.router.subscribe(self._joined, Joined)
        parts.router.subscribe(self._invited, Invited)
        parts.router.subscribe(self._renamed, ChannelRenamed)

    def _joined(self, event: Joined) -> None:
        """Send AWAY to the other members if a joining user is away, for clients with away-notify."""
        user, channel = self._network.user(nick_of(event.source)), self._network.channel(event.channel)
        if user is None or channel is None or user.away is None:
            return
        away = AwaySet(self._router.ids.stamp(), user.source, user.away)
        others = [each for each in self._router.hearing(channel) if each.user is not user]
        self._router.show_in(away, [each for each in others if each.wants & Flavour.AWAY_NOTIFY])

    def _invited(self, event: Invited) -> None:
        """Send an invitation also to the channel's members who may invite, by invite-notify.

        Only sessions with this capability get it.
        """
        channel = self._network.channel(event.channel)
        if channel is None:
            return
        pair = (self._network.user(nick_of(event.source)), self._network.user(event.nick))
        members = [each for each in channel.members if channel.may_invite(each) and each not in pair]
        self._router.show(event, members, wanting=Flavour.INVITE_NOTIFY)

    def _renamed(self, event: ChannelRenamed) -> None:
        """Send PART and JOIN for a renamed channel to clients that do not know the command RENAME."""
        channel = self._network.channel(event.new)
        if channel is None:
            return
        reason = event.reason or f"Renamed to {event.new}"
        for member in list(channel.members):
            for session in self._router.sessions.get(member, ()):
                if not session.wants & Flavour.RENAME:
                    session.send(wire(Message("PART", (event.channel, reason), member.source)))
                    show_join(Context(self._parts, session), channel)
