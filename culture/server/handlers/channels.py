"""Channels: JOIN, PART, TOPIC, NAMES, INVITE, KICK, RENAME (draft/channel-rename), and LIST."""

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from culture.lib.secret_compare import same_secret
from culture.protocol.message import Message
from culture.protocol.names import fold, matches, valid_channel
from culture.protocol.numerics import Numeric
from culture.protocol.split import clip, room
from culture.server.channels.join_reply import names_reply, show_channel, show_elsewhere, show_topic
from culture.server.channels.ownership import may_release, name_fault, rank_at_entry, warn_of_confusable
from culture.server.commands import command
from culture.server.context import Context
from culture.server.core.network import Network
from culture.server.core.state import Channel
from culture.server.core.visibility import sees_channel
from culture.server.errors import Failed, Refused
from culture.server.events import ChannelRenamed, Invited, Joined, Kicked, Parted, TopicSet
from culture.server.subscriptions.metadata_replies import sync_elsewhere

_LIST_CONDITION = re.compile(r"([CT]?)([<>])([0-9]{1,9})", re.IGNORECASE)
_MINUTE = 60.0


@command("JOIN", params=1)
def join(ctx: Context, message: Message) -> None:
    """``JOIN #a,#b key``: join channels; ``JOIN 0`` leaves all."""
    names, *keys = message.params
    if names == "0":
        for channel in sorted(ctx.user.channels, key=lambda each: each.name):
            ctx.publish(Parted(ctx.stamp(), ctx.user.source, channel.name))
        return
    for name, key in zip_longest(names.split(","), keys[0].split(",")[: names.count(",") + 1] if keys else ()):
        if name:
            ctx.each(_join, name, key)


def _join(ctx: Context, name: str, key: str | None) -> None:
    limits = ctx.config.limits
    if not valid_channel(name, limits.channel_length):
        raise Refused(Numeric.ERR_NOSUCHCHANNEL, name, text=_how_channels_look(name, limits.channel_length))
    channel = ctx.network.channel(name)
    if channel is not None and ctx.user in channel.members:
        return
    if channel is None and (fault := name_fault(ctx, name)) is not None:
        raise Refused(Numeric.ERR_NOSUCHCHANNEL, name, text=fault)
    if len(ctx.user.channels) >= limits.channels_per_client:
        raise Refused(Numeric.ERR_TOOMANYCHANNELS, name)
    # An empty standing channel has no operator who could invite: its first member is let in.
    if channel is not None and (channel.members or channel.is_registered):
        _check_entry(ctx, channel, key)
    user = ctx.user
    status = rank_at_entry(ctx.network, channel, user)
    spelling = channel.name if channel is not None else name
    ctx.publish(Joined(ctx.stamp(), user.source, spelling, status, user.account, user.realname))
    channel = ctx.find_channel(name)
    ctx.session.place = channel.name
    show_channel(ctx, channel)
    show_elsewhere(ctx, channel)
    warn_of_confusable(ctx, channel)
    sync_elsewhere(ctx, spelling)


def _how_channels_look(name: str, limit: int) -> str:
    text = f"A channel name begins with # and has at most {limit} bytes"
    return f"{text}: try #{name}" if name[:1].isalnum() and valid_channel(f"#{name}", limit) else text


def _check_entry(ctx: Context, channel: Channel, key: str | None) -> None:
    user = ctx.user
    if channel.is_founder(user):
        return
    invited = channel in user.invitations
    if channel.key is not None and not same_secret(key, channel.key):
        raise Refused(Numeric.ERR_BADCHANNELKEY, channel.name)
    if invited:
        return
    if "i" in channel.flags and not channel.listed("I", user):
        raise Refused(Numeric.ERR_INVITEONLYCHAN, channel.name)
    if channel.limit is not None and len(channel.members) >= channel.limit:
        raise Refused(Numeric.ERR_CHANNELISFULL, channel.name)
    if channel.listed("b", user) and not channel.listed("e", user):
        raise Refused(Numeric.ERR_BANNEDFROMCHAN, channel.name)


@command("PART", params=1)
def part(ctx: Context, message: Message) -> None:
    """``PART #a,#b :reason``: leave channels."""
    names, *reason = message.params
    for name in names.split(","):
        if name:
            ctx.each(_part, name, reason[0] if reason else None)


def _part(ctx: Context, name: str, reason: str | None) -> None:
    channel = ctx.find_channel(name)
    if ctx.user not in channel.members:
        raise Refused(Numeric.ERR_NOTONCHANNEL, channel.name)
    ctx.publish(Parted(ctx.stamp(), ctx.user.source, channel.name, reason))


@command("TOPIC", params=1)
def topic(ctx: Context, message: Message) -> None:
    """``TOPIC #channel``: show the topic; with a text: set it."""
    channel = ctx.find_channel(message.params[0])
    if len(message.params) == 1:
        if not sees_channel(ctx.user, channel):
            raise Refused(Numeric.ERR_NOTONCHANNEL, channel.name)
        show_topic(ctx, channel)
        return
    if ctx.user not in channel.members:
        raise Refused(Numeric.ERR_NOTONCHANNEL, channel.name)
    if "t" in channel.flags and not channel.is_operator(ctx.user):
        raise Refused(Numeric.ERR_CHANOPRIVSNEEDED, channel.name)
    text = message.params[1]
    left = min(ctx.config.limits.topic_length, room(ctx.user.source, "TOPIC", channel.name))
    if len(text.encode()) > left:
        raise Refused(Numeric.ERR_INPUTTOOLONG, text=f"Topic too long: at most {left} bytes here")
    ctx.publish(TopicSet(ctx.stamp(), ctx.user.source, channel.name, text))


@command("NAMES")
def names(ctx: Context, message: Message) -> None:
    """``NAMES #a,#b``: list the members of channels."""
    ctx.pull(names_reply(ctx, message.params[0] if message.params else "*"))


@command("INVITE")
def invite(ctx: Context, message: Message) -> None:
    """``INVITE nick #channel``: invite a user; ``INVITE``: list your invitations."""
    if not message.params:
        for invitation in ctx.user.invitations:
            ctx.reply(Numeric.RPL_INVITELIST, invitation.name)
        ctx.reply(Numeric.RPL_ENDOFINVITELIST)
        return
    if len(message.params) < 2:
        raise Refused(Numeric.ERR_NEEDMOREPARAMS, "INVITE")
    nick, name = message.params[:2]
    channel = ctx.find_channel(name)
    if ctx.user not in channel.members:
        raise Refused(Numeric.ERR_NOTONCHANNEL, channel.name)
    if not channel.may_invite(ctx.user):
        raise Refused(Numeric.ERR_CHANOPRIVSNEEDED, channel.name)
    invited = ctx.find_user(nick)
    if invited in channel.members:
        raise Refused(Numeric.ERR_USERONCHANNEL, invited.nick, channel.name)
    ctx.reply(Numeric.RPL_INVITING, invited.nick, channel.name)
    if invited.away is not None:
        ctx.reply(Numeric.RPL_AWAY, invited.nick, text=invited.away)
    ctx.publish(Invited(ctx.stamp(), ctx.user.source, invited.nick, channel.name))


@command("KICK", params=2)
def kick(ctx: Context, message: Message) -> None:
    """``KICK #channel nick :reason``: remove a member."""
    channels, nicks, *reason = message.params
    names = channels.split(",")
    kicked = nicks.split(",")
    if len(names) == 1:
        names *= len(kicked)
    for name, nick in zip(names, kicked, strict=False):
        ctx.each(_kick, name, nick, reason[0] if reason and reason[0] else None)


def _kick(ctx: Context, name: str, nick: str, reason: str | None) -> None:
    channel = ctx.find_channel(name)
    if ctx.user not in channel.members:
        raise Refused(Numeric.ERR_NOTONCHANNEL, channel.name)
    if not channel.is_operator(ctx.user):
        raise Refused(Numeric.ERR_CHANOPRIVSNEEDED, channel.name)
    kicked = ctx.network.users.get(fold(nick))
    if kicked is None or kicked not in channel.members:
        raise Refused(Numeric.ERR_USERNOTINCHANNEL, nick, channel.name)
    text = clip(reason or ctx.user.nick, ctx.config.limits.kick_length)
    ctx.publish(Kicked(ctx.stamp(), ctx.user.source, channel.name, kicked.nick, text))


@command("RENAME", params=2)
def rename(ctx: Context, message: Message) -> None:
    """``RENAME #old #new :reason``: rename a channel that you operate."""
    (name, new), reason = message.params[:2], "".join(message.params[2:3])
    channel = ctx.find_channel(name)
    if ctx.user not in channel.members:
        raise Refused(Numeric.ERR_NOTONCHANNEL, channel.name)
    if not channel.is_operator(ctx.user):
        raise Refused(Numeric.ERR_CHANOPRIVSNEEDED, channel.name)
    if channel.is_registered and not may_release(ctx.user, channel):
        raise _cannot_rename(channel.name, new, "Only its founder or an IRC operator may rename a registered channel")
    if channel.standing:
        raise _cannot_rename(channel.name, new, "A channel of the configuration cannot be renamed")
    if not valid_channel(new, ctx.config.limits.channel_length):
        raise _cannot_rename(channel.name, new, "This is not a channel name")
    if new == channel.name:
        raise _cannot_rename(channel.name, new, "The channel already has this name")
    if ctx.network.channel(new) not in (None, channel):
        raise Failed("RENAME", "CHANNEL_NAME_IN_USE", channel.name, new, text="There is a channel of this name")
    if (fault := name_fault(ctx, new, channel)) is not None:
        raise _cannot_rename(channel.name, new, fault)
    left = room(ctx.user.source, "RENAME", f"{channel.name} {new}")
    if len(reason.encode()) > left:
        raise Refused(Numeric.ERR_INPUTTOOLONG, text=f"Reason too long: at most {left} bytes here")
    ctx.publish(ChannelRenamed(ctx.stamp(), ctx.user.source, channel.name, new, reason))


def _cannot_rename(name: str, new: str, text: str) -> Failed:
    return Failed("RENAME", "CANNOT_RENAME", name, new, text=text)


class ListCondition(NamedTuple):
    """A condition of LIST on members (""), minutes since creation (C) or since the topic (T)."""

    what: str
    more: bool
    value: int

    def holds(self, channel: Channel, now: float) -> bool:
        """Return whether the channel meets the condition at the time ``now``."""
        if self.what == "":
            actual: float = len(channel.members)
        elif self.what == "C":
            actual = (now - channel.created) / _MINUTE
        elif channel.topic is not None:
            actual = (now - channel.topic.at) / _MINUTE
        else:
            return False
        return actual > self.value if self.more else actual < self.value


class ListFilter(NamedTuple):
    """The filter of a LIST: a channel fits a mask, none of ``without``, and every condition."""

    masks: tuple[str, ...]
    without: tuple[str, ...]
    conditions: tuple[ListCondition, ...]

    @classmethod
    def parse(cls, words: Iterable[str]) -> "ListFilter":
        """Parse a filter's words: ``#name``, ``*mask*``, ``!*mask*``, ``>3``, ``C<60``, ``T>60``."""
        masks, without, conditions = [], [], []
        for word in words:
            if condition := _LIST_CONDITION.fullmatch(word):
                conditions.append(ListCondition(condition[1].upper(), condition[2] == ">", int(condition[3])))
            elif word.startswith("!"):
                without.append(word[1:])
            elif word:
                masks.append(word)
        return cls(tuple(masks), tuple(without), tuple(conditions))

    def fits(self, channel: Channel, now: float) -> bool:
        """Return whether the channel passes the filter at the time ``now``."""
        return (
            (not self.masks or any(matches(mask, channel.name) for mask in self.masks))
            and not any(matches(mask, channel.name) for mask in self.without)
            and all(condition.holds(channel, now) for condition in self.conditions)
        )

    def candidates(self, network: Network) -> list[Channel]:
        """Return the channels to be filtered: those named, or all if there is a mask with wildcards."""
        if not self.masks or any("*" in mask or "?" in mask for mask in self.masks):
            return list(network.channels.values())
        exact = (network.channel(name) for name in self.masks)
        return list(dict.fromkeys(channel for channel in exact if channel is not None))


@command("LIST")
def listing(ctx: Context, message: Message) -> None:
    """``LIST [#channel,*mask*,!*mask*,>users,C<minutes,T>minutes]``: list channels.

    Each line has a channel's size and topic. < and > choose by the number of members, with C by the channel's age, with
    T by the age of its topic.
    """
    query = ListFilter.parse(word for param in message.params for word in param.split(","))
    ctx.pull([ctx.numeric(Numeric.RPL_LISTSTART, "Channel")])
    ctx.pull(ctx.bounded(_list_rows(ctx, query), "LIST"))
    ctx.pull([ctx.numeric(Numeric.RPL_LISTEND)])


def _list_rows(ctx: Context, query: ListFilter) -> Iterator[Message]:
    for channel in query.candidates(ctx.network):
        # The answer takes as long as the client reads it: the channel may be gone or hidden by now.
        exists = ctx.network.channel(channel.name) is channel
        is_shown = exists and (channel.members or channel.standing) and sees_channel(ctx.user, channel)
        if is_shown and query.fits(channel, ctx.now()):
            topic = channel.topic.text if channel.topic is not None else ""
            yield ctx.numeric(Numeric.RPL_LIST, channel.name, str(len(channel.members)), topic)
