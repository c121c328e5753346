"""The members of a channel as NAMES shows them."""

from collections.abc import Iterator

from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.server.context import Context
from culture.server.state import Channel, symbols
from culture.server.visibility import sees_member

_ROOM = 400  # what a line of nicks may take beside its fixed part


def names_rows(ctx: Context, channel: Channel) -> Iterator[Message]:
    """353 as often as needed; 366 is for whoever asked."""
    kind = "@" if "s" in channel.flags else "="
    line: list[str] = []
    size = 0
    for word in _words(ctx, channel):
        if line and size + len(word) + 1 > _ROOM:
            yield ctx.numeric(Numeric.RPL_NAMREPLY, kind, channel.name, text=" ".join(line))
            line, size = [], 0
        line.append(word)
        size += len(word) + 1
    if line:
        yield ctx.numeric(Numeric.RPL_NAMREPLY, kind, channel.name, text=" ".join(line))


def _words(ctx: Context, channel: Channel) -> Iterator[str]:
    """Nicks with their prefixes; outsiders do not see the invisible."""
    caps = ctx.session.caps.enabled
    every, hosts = "multi-prefix" in caps, "userhost-in-names" in caps
    for user, status in list(channel.members.items()):
        if sees_member(ctx.user, user, channel):
            yield symbols(status, every) + (user.source if hosts else user.nick)
