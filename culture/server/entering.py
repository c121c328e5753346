"""What a client is shown of a channel that it is in from now on."""

from collections.abc import Iterator

from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.server.context import Context, as_word
from culture.server.events import Joined
from culture.server.members import names_rows
from culture.server.metadata import show_synced
from culture.server.render import render
from culture.server.state import Channel
from culture.server.visibility import sees_channel


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
