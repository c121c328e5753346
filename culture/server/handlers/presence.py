"""Whether somebody is at the keyboard: AWAY."""

from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.server.commands import command
from culture.server.context import Context
from culture.server.events import AwaySet


@command("AWAY")
def away(ctx: Context, message: Message) -> None:
    """``AWAY :back at noon``: tell who writes to me; without a text: I am back (RFC 2812 §4.1)."""
    given = message.params[0] if message.params else ""
    text = given.encode()[: ctx.config.limits.away_length].decode(errors="ignore") or None
    if text != ctx.user.away:
        ctx.publish(AwaySet(ctx.stamp(), ctx.user.source, text))
    ctx.reply(Numeric.RPL_UNAWAY if text is None else Numeric.RPL_NOWAWAY)
