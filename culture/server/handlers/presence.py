"""What somebody says of themselves: AWAY, SETNAME."""

from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.protocol.split import clip, room
from culture.server.commands import command
from culture.server.context import Context
from culture.server.errors import Failed
from culture.server.events import AwaySet, RealnameSet


@command("AWAY")
def away(ctx: Context, message: Message) -> None:
    """``AWAY :back at noon``: tell who writes to me; without a text: I am back (RFC 2812 §4.1)."""
    given = message.params[0] if message.params else ""
    text = clip(given, ctx.config.limits.away_length) or None
    if text != ctx.user.away:
        ctx.publish(AwaySet(ctx.stamp(), ctx.user.source, text))
    ctx.reply(Numeric.RPL_UNAWAY if text is None else Numeric.RPL_NOWAWAY)


@command("SETNAME", params=1)
def setname(ctx: Context, message: Message) -> None:
    """``SETNAME :real name``: have another real name (IRCv3 setname)."""
    realname = message.params[0]
    most = min(ctx.config.limits.realname_length, room(ctx.user.source, "SETNAME", ""))
    if not realname.strip(" ") or len(realname.encode()) > most:
        raise Failed("SETNAME", "INVALID_REALNAME", text=f"A real name has 1 to {most} bytes")
    ctx.publish(RealnameSet(ctx.stamp(), ctx.user.source, realname))
