"""MARKREAD: how far a user has read (IRCv3 draft/read-marker)."""

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
    """``MARKREAD target [timestamp=time]``: set how far you have read, or ask for it."""
    if not message.params:
        raise Failed(VERB, "NEED_MORE_PARAMS", text="Name a channel or nick")
    target, *words = message.params
    limits, markers, user = ctx.config.limits, ctx.parts.markers, ctx.user
    if not valid_channel(target, limits.channel_length) and not valid_nick(target, limits.nick_length):
        raise Failed(VERB, "INVALID_PARAMS", target, text="This is neither a channel nor a nick")
    if words and markers.set(user, target, _time(ctx, words[0]), limits.read_markers):
        others = [session for session in markers.sessions(user) if session is not ctx.session]
        markers.show(others, user, target)
    markers.show([ctx.session], user, target)


def _time(ctx: Context, words: str) -> str:
    """Return the time in ``words``, a parameter ``timestamp=time``; at most the present time.

    Raises Failed if there is no valid time.
    """
    time = words.removeprefix(_PREFIX)
    if time == words or not valid_time(time):
        raise Failed(VERB, "INVALID_PARAMS", words, text=f"A time looks like {_PREFIX}{iso_time(ctx.now())}")
    return min(time, iso_time(ctx.now()))
