"""Replies to a JOIN: topic, names and metadata of the channel."""

from collections.abc import Iterator

from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.protocol.split import room
from culture.server.context import Context, as_word
from culture.server.core.render import render
from culture.server.core.state import Channel, User, symbols
from culture.server.core.visibility import sees_channel, sees_member
from culture.server.events import Joined
from culture.server.subscriptions.metadata_replies import show_synced


def names_rows(ctx: Context, channel: Channel) -> Iterator[Message]:
    """Yield the channel's members as 353 lines, as many as needed.

    The final 366 is not among them.
    """
    kind = "@" if "s" in channel.flags else "="
    most = room(ctx.router.name, Numeric.RPL_NAMREPLY.code, f"{ctx.nick} {kind} {channel.name}")
    line: list[str] = []
    size = 0
    # The answer takes as long as the client reads it: skip members who left meanwhile.
    for user in list(channel.members):
        word = _word(ctx, channel, user)
        if size + len(word) > most:
            yield ctx.numeric(Numeric.RPL_NAMREPLY, kind, channel.name, text=" ".join(line))
            line, size = [], 0
            word = _word(ctx, channel, user)
        if word:
            line.append(word)
            size += len(word) + 1
    if line:
        yield ctx.numeric(Numeric.RPL_NAMREPLY, kind, channel.name, text=" ".join(line))


def _word(ctx: Context, channel: Channel, user: User) -> str:
    """Return a member's nick for a NAMES reply, with the prefixes of the member's rank.

    Returns "" if the user has left the channel or is hidden from the asker.
    """
    status = channel.members.get(user)
    if status is None or not sees_member(ctx.user, user, channel):
        return ""
    caps = ctx.session.caps.enabled
    return symbols(status, "multi-prefix" in caps) + (user.source if "userhost-in-names" in caps else user.nick)


def show_join(ctx: Context, channel: Channel) -> None:
    """Send this session JOIN, topic, names and metadata, as if its user had just joined."""
    user = ctx.user
    joined = Joined(ctx.stamp(), user.source, channel.name, account=user.account, realname=user.realname)
    line = render(joined, ctx.session.wants, user.account)
    if line is not None:
        ctx.session.send(line)
    markers = ctx.parts.markers
    if ctx.session in markers.sessions(user):
        markers.show([ctx.session], user, channel.name)
    show_channel(ctx, channel)


def show_channel(ctx: Context, channel: Channel) -> None:
    """Send this session a channel's topic, if it has one, names, and the metadata subscribed to."""
    if channel.topic is not None:
        show_topic(ctx, channel)
    ctx.pull(names_reply(ctx, channel.name))
    show_synced(ctx, channel)


def show_elsewhere(ctx: Context, channel: Channel) -> None:
    """Send a channel's topic and names to the other sessions of this session's user."""
    for session in list(ctx.router.sessions.get(ctx.user, ())):
        if session is not ctx.session:
            other = Context(ctx.parts, session)
            if channel.topic is not None:
                show_topic(other, channel)
            other.pull(names_reply(other, channel.name))


def show_topic(ctx: Context, channel: Channel) -> None:
    """Send a channel's topic (332 and 333), or 331 if the channel has none."""
    if channel.topic is None:
        ctx.reply(Numeric.RPL_NOTOPIC, channel.name)
        return
    ctx.reply(Numeric.RPL_TOPIC, channel.name, text=channel.topic.text)
    ctx.reply(Numeric.RPL_TOPICTIME, channel.name, channel.topic.by, str(int(channel.topic.at)))


def names_reply(ctx: Context, names: str) -> Iterator[Message]:
    """Yield the members of the channels in ``names`` (comma-separated), and one 366 at the end."""
    for name in names.split(","):
        channel = ctx.network.channel(name)
        if channel is not None and sees_channel(ctx.user, channel):
            yield from names_rows(ctx, channel)
    yield ctx.numeric(Numeric.RPL_ENDOFNAMES, as_word(names))
