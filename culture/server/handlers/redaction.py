"""REDACT: take a message back (IRCv3 draft/message-redaction)."""

from culture.protocol.message import Message
from culture.protocol.names import is_channel
from culture.protocol.numerics import Numeric
from culture.server.commands import command
from culture.server.context import Context
from culture.server.errors import Failed, Refused
from culture.server.events import Redacted
from culture.server.recent import Trace

VERB = "REDACT"


@command(VERB, params=2)
def redact(ctx: Context, message: Message) -> None:
    """``REDACT target msgid :reason``: take back what I said, or what somebody said in my channel."""
    if "draft/message-redaction" not in ctx.session.caps.enabled:
        raise Refused(Numeric.ERR_UNKNOWNCOMMAND, VERB)
    given, msgid, *reason = message.params
    find = _find_in_channel if is_channel(given) else _find_in_private
    target, trace = find(ctx, given, msgid)
    ctx.parts.recent.forget(target, trace)
    why = reason[0] if reason and reason[0] else None
    ctx.publish(Redacted(ctx.stamp(), ctx.user.source, target, msgid, why))


def _find_in_channel(ctx: Context, given: str, msgid: str) -> tuple[str, Trace]:
    channel, user, recent = ctx.network.channel(given), ctx.user, ctx.parts.recent
    if channel is None or user not in channel.members:
        raise _not_here(given)
    trace = recent.find(channel.name, msgid)
    if trace is None:
        raise _unknown(channel.name, msgid)
    if not channel.is_operator(user) and not recent.is_by(trace, user):
        raise _forbidden(channel.name, msgid)
    return channel.name, trace


def _find_in_private(ctx: Context, given: str, msgid: str) -> tuple[str, Trace]:
    other, user, recent = ctx.network.user(given), ctx.user, ctx.parts.recent
    if other is None:
        raise _not_here(given)
    trace = recent.find(other.nick, msgid)
    if trace is not None and recent.is_by(trace, user):
        return other.nick, trace
    heard = recent.find(user.nick, msgid)
    if heard is not None and recent.is_by(heard, other):
        raise _forbidden(other.nick, msgid)
    # What was said between others does not exist for this one.
    raise _unknown(other.nick, msgid)


def _not_here(given: str) -> Failed:
    return Failed(VERB, "INVALID_TARGET", given, text=f"You cannot take back messages from {given}")


def _unknown(target: str, msgid: str) -> Failed:
    return Failed(VERB, "UNKNOWN_MSGID", target, msgid, text="There is no such message, or it is too old")


def _forbidden(target: str, msgid: str) -> Failed:
    text = "You may take back your own messages, and any in a channel that you are operator of"
    return Failed(VERB, "REDACT_FORBIDDEN", target, msgid, text=text)
