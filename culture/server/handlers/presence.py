"""AWAY and SETNAME: a user's away message and real name."""

from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.protocol.split import clip, room
from culture.server.commands import command
from culture.server.context import Context
from culture.server.errors import Failed
from culture.server.events import AwaySet, RealnameSet


@command("AWAY")
def away(ctx: Context, message: Message) -> None:
    """``AWAY :back at noon``: set an away message; without a text: remove it (RFC 2812 §4.1)."""
    requested = message.params[0] if message.params else ""
    text = clip(requested, ctx.config.limits.away_length) or None
    if text != ctx.user.away:
        ctx.publish(AwaySet(ctx.stamp(), ctx.user.source, text))
    ctx.reply(Numeric.RPL_UNAWAY if text is None else Numeric.RPL_NOWAWAY)


@command("SETNAME", params=1)
def setname(ctx: Context, message: Message) -> None:
    """``SETNAME :real name``: change your real name (IRCv3 setname)."""
    realname = message.params[0]
    most = min(ctx.config.limits.realname_length, room(ctx.user.source, "SETNAME", ""))
    if not realname.strip(" ") or len(realname.encode()) > most:
        raise Failed("SETNAME", "INVALID_REALNAME", text=f"A real name has 1 to {most} bytes")
    ctx.publish(RealnameSet(ctx.stamp(), ctx.user.source, realname))
