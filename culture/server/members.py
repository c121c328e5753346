"""The members of a channel as NAMES shows them."""

from collections.abc import Iterator

from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.protocol.split import room
from culture.server.context import Context
from culture.server.state import Channel, User, symbols
from culture.server.visibility import sees_member


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
