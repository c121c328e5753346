"""Rules on creating, operating and registering channels.

A new channel needs a name that people can read and cannot confuse with another (``channel_names``). A standing
channel (one of the configuration) belongs to people: if accounts of people exist, only users of class human are its
operators. Elsewhere, and in channels that users created, ranks are as in IRC.
"""

from collections.abc import Sequence

from culture.protocol.channel_names import fault_in
from culture.protocol.modes import ModeChange
from culture.protocol.numerics import Numeric
from culture.protocol.vocabulary import UserClass
from culture.server.context import Context
from culture.server.core.network import Network
from culture.server.core.router import Router
from culture.server.core.state import Channel, User
from culture.server.core.visibility import is_operator, sees_channel
from culture.server.errors import Refused
from culture.server.events import AccountSet, Joined, ModeSet, UserModeSet, nick_of
from culture.server.net.poller import Flushable

_AT_ONCE = 12  # changes of one MODE line


def name_fault(ctx: Context, name: str, renamed: Channel | None = None) -> str | None:
    """Return why a new channel may not have this name, as a text for people; None if it may.

    ``renamed``: the channel that would get the name, whose present name does not count.
    """
    fault = fault_in(name)
    if fault is not None:
        return fault
    others = [channel for channel in ctx.network.confusable(name) if channel is not renamed]
    if not others:
        return None
    return f"This name looks like {_named(ctx, others)}: join that one, or choose a name that nobody confuses with it"


def _named(ctx: Context, channels: Sequence[Channel]) -> str:
    return next((each.name for each in channels if sees_channel(ctx.user, each)), "that of another channel")


def warn_of_confusable(ctx: Context, channel: Channel) -> None:
    """Send a client that joined a channel a warning if the channel's name looks like another's.

    No new channel gets such a name, but a link to another server can bring one.
    """
    names = [each.name for each in ctx.network.confusable(channel.name) if sees_channel(ctx.user, each)]
    if names and "standard-replies" in ctx.session.caps.enabled:
        text = f"This is {channel.name}, whose name looks like {names[0]}"
        ctx.send("WARN", "JOIN", "CONFUSABLE_NAME", channel.name, names[0], text)


def may_operate(network: Network, channel: Channel, user: User) -> bool:
    """Return whether this user may be an operator of the channel.

    In a channel of the configuration only people may, once an account of a person exists.
    """
    return not (channel.standing and network.knows_people) or user.kind == UserClass.HUMAN


def rank_at_entry(network: Network, channel: Channel | None, user: User) -> str:
    """Return the rank ("o" or "") of a user who joins a channel; ``channel`` None is a new one.

    The first member is the operator. In a registered channel the founder (whose account registered it) is, whenever
    they come; in a channel of the configuration the first person is, since agents often join before people.
    """
    if channel is None:
        return "o"
    if not may_operate(network, channel, user):
        return ""
    if channel.is_registered:
        return "o" if channel.is_founder(user) else ""
    if not channel.standing:
        return "" if channel.members else "o"
    return "" if user.is_agent or any(_is_person(network, each) for each in channel.members) else "o"


def _is_person(network: Network, user: User) -> bool:
    return user.kind == UserClass.HUMAN if network.knows_people else not user.is_agent


class StandingChannels:
    """Takes operator rank, in channels of the configuration, from users who may not have it.

    A user can have the rank from a time before there were accounts, over a link, or after a logout. It is taken at the
    end of the turn by a MODE from this server, so that linked servers take it as well.
    """

    def __init__(self, network: Network, router: Router, dirty: list[Flushable]) -> None:
        self._network = network
        self._router = router
        self._dirty = dirty
        self._pending: set[str] = set()
        router.subscribe(self._channel_changed, Joined, ModeSet)
        router.subscribe(self._user_changed, AccountSet, UserModeSet)

    def review(self) -> None:
        """Check the operators of all channels of the configuration at the end of this turn.

        To be called after accounts of people were made or revoked.
        """
        for channel in self._network.channels.values():
            self._review(channel)

    def _review(self, channel: Channel) -> None:
        if channel.standing and self._network.knows_people:
            if not self._pending:
                self._dirty.append(self)
            self._pending.add(channel.name)

    def _channel_changed(self, event: Joined | ModeSet) -> None:
        channel = self._network.channel(event.channel)
        if channel is not None:
            self._review(channel)

    def _user_changed(self, event: AccountSet | UserModeSet) -> None:
        user = self._network.user(nick_of(event.source))
        for channel in user.channels if user is not None else ():
            self._review(channel)
            if user is not None and channel.standing and isinstance(event, AccountSet):
                self._promote(channel, user)

    def _promote(self, channel: Channel, user: User) -> None:
        """Make a person who logs in while in a channel its operator, if joining now would do so."""
        if not self._network.knows_people or user.server != self._router.name or user.kind != UserClass.HUMAN:
            return
        others = [each for each in channel.members if each is not user and each.kind == UserClass.HUMAN]
        if not others and not channel.is_operator(user) and (not channel.is_registered or channel.is_founder(user)):
            self._set(channel, [ModeChange(True, "o", user.nick)])

    def flush(self) -> None:
        """Take operator rank, by a MODE, from users of the reviewed channels who may not have it."""
        pending, self._pending = self._pending, set()
        for name in sorted(pending):
            channel = self._network.channel(name)
            if channel is not None:
                operators = [user for user, rank in channel.members.items() if "o" in rank]
                nicks = [user.nick for user in operators if not may_operate(self._network, channel, user)]
                self._set(channel, [ModeChange(False, "o", nick) for nick in nicks])

    def _set(self, channel: Channel, changes: Sequence[ModeChange]) -> None:
        for start in range(0, len(changes), _AT_ONCE):
            some = tuple(changes[start : start + _AT_ONCE])
            self._router.follow(ModeSet(self._router.ids.stamp(), self._router.name, channel.name, some))


def may_release(user: User, channel: Channel) -> bool:
    """Return whether the user may unregister the channel: its founder and IRC operators may."""
    return channel.is_founder(user) or is_operator(user)


def check_registration(ctx: Context, channel: Channel, add: bool) -> None:
    """Raise Refused if the user may not register (``add``) or unregister the channel."""
    user, limit = ctx.user, ctx.config.limits.registered_channels
    if not add:
        if not may_release(user, channel):
            text = "Only the channel's founder or an IRC operator may do this"
            raise Refused(Numeric.ERR_CHANOPRIVSNEEDED, channel.name, text=text)
    elif user.account is None:
        text = "Log in first: a registered channel belongs to an account"
        raise Refused(Numeric.ERR_NEEDREGGEDNICK, channel.name, text=text)
    elif sum(each.is_founder(user) for each in ctx.network.channels.values()) >= limit:
        text = f"An account may register at most {limit} channels"
        raise Refused(Numeric.ERR_TOOMANYCHANNELS, channel.name, text=text)
