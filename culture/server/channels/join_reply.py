"""What a client is shown of a channel that it is in from now on."""

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
    """353 as often as needed; 366 is for whoever asked."""
    kind = "@" if "s" in channel.flags else "="
    most = room(ctx.router.name, Numeric.RPL_NAMREPLY.code, f"{ctx.nick} {kind} {channel.name}")
    line: list[str] = []
    size = 0
    # The answer takes as long as the client reads it: whoever left meanwhile is not in the rest of it.
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
    """The nick with its prefixes; empty for who is gone, or invisible to somebody from outside."""
    status = channel.members.get(user)
    if status is None or not sees_member(ctx.user, user, channel):
        return ""
    caps = ctx.session.caps.enabled
    return symbols(status, "multi-prefix" in caps) + (user.source if "userhost-in-names" in caps else user.nick)


def show_join(ctx: Context, channel: Channel) -> None:
    """As if the client's user had just come in, to this session alone."""
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
    """The topic, if there is one, the members, and the metadata asked for."""
    if channel.topic is not None:
        show_topic(ctx, channel)
    ctx.pull(named(ctx, channel.name))
    show_synced(ctx, channel)


def show_elsewhere(ctx: Context, channel: Channel) -> None:
    """Topic and members to the user's other sessions: they are in the channel too, and did not ask for it."""
    for session in list(ctx.router.sessions.get(ctx.user, ())):
        if session is not ctx.session:
            other = Context(ctx.parts, session)
            if channel.topic is not None:
                show_topic(other, channel)
            other.pull(named(other, channel.name))


def show_topic(ctx: Context, channel: Channel) -> None:
    """332 and 333, or 331."""
    if channel.topic is None:
        ctx.reply(Numeric.RPL_NOTOPIC, channel.name)
        return
    ctx.reply(Numeric.RPL_TOPIC, channel.name, text=channel.topic.text)
    ctx.reply(Numeric.RPL_TOPICTIME, channel.name, channel.topic.by, str(int(channel.topic.at)))


def named(ctx: Context, asked: str) -> Iterator[Message]:
    """Who is in the channels of this list, with one 366."""
    for name in asked.split(","):
        channel = ctx.network.channel(name)
        if channel is not None and sees_channel(ctx.user, channel):
            yield from names_rows(ctx, channel)
    yield ctx.numeric(Numeric.RPL_ENDOFNAMES, as_word(asked))
