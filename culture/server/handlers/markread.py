"""MARKREAD: how far one has read (IRCv3 draft/read-marker)."""

from culture.protocol.message import Message
from culture.protocol.names import valid_channel, valid_nick
from culture.server.commands import command
from culture.server.context import Context
from culture.server.core.render import iso_time
from culture.server.errors import Failed
from culture.server.subscriptions.read_markers import VERB, valid_time

_PREFIX = "timestamp="


@command(VERB)
def markread(ctx: Context, message: Message) -> None:
    """``MARKREAD target [timestamp=time]``: up to when I have read, or what I have read up to on my other devices."""
    if not message.params:
        raise Failed(VERB, "NEED_MORE_PARAMS", text="Say of which channel or nick")
    target, *given = message.params
    limits, markers, user = ctx.config.limits, ctx.parts.markers, ctx.user
    if not valid_channel(target, limits.channel_length) and not valid_nick(target, limits.nick_length):
        raise Failed(VERB, "INVALID_PARAMS", target, text="This is no channel and no nick")
    if given and markers.set(user, target, _time(ctx, given[0]), limits.read_markers):
        others = [session for session in markers.sessions(user) if session is not ctx.session]
        markers.show(others, user, target)
    markers.show([ctx.session], user, target)


def _time(ctx: Context, given: str) -> str:
    """The time meant; what is yet to come cannot have been read."""
    time = given.removeprefix(_PREFIX)
    if time == given or not valid_time(time):
        raise Failed(VERB, "INVALID_PARAMS", given, text=f"A time looks like {_PREFIX}{iso_time(ctx.now())}")
    return min(time, iso_time(ctx.now()))
