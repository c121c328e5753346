"""REDACT: take a message back (IRCv3 draft/message-redaction)."""

from functools import partial

from culture.protocol.message import Message
from culture.protocol.names import is_channel
from culture.protocol.numerics import Numeric
from culture.server.commands import Later, command
from culture.server.context import Context
from culture.server.core.recent_messages import Trace
from culture.server.core.state import Channel
from culture.server.errors import Failed, Refused
from culture.server.events import Redacted

VERB = "REDACT"


@command(VERB, params=2)
def redact(ctx: Context, message: Message) -> Later | None:
    """``REDACT target msgid :reason``: take back your message, or any in a channel you operate."""
    if "draft/message-redaction" not in ctx.session.caps.enabled:
        raise Refused(Numeric.ERR_UNKNOWNCOMMAND, VERB)
    name, msgid, *reason = message.params
    why = reason[0] if reason and reason[0] else None
    find = _find_in_channel if is_channel(name) else _find_in_private
    target, trace = find(ctx, name, msgid)
    if trace is not None:
        ctx.parts.recent.forget(target, trace)
        _take_back(ctx, target, msgid, why)
    elif ctx.parts.offers.find_older is not None:
        return Later(
            ctx.parts.offers.find_older(ctx, target, msgid, False), partial(_take_back_older, ctx, name, msgid, why)
        )
    else:
        raise _unknown(target, msgid)
    return None


def _take_back(ctx: Context, target: str, msgid: str, why: str | None) -> None:
    ctx.publish(Redacted(ctx.stamp(), ctx.user.source, target, msgid, why))


def _take_back_older(ctx: Context, name: str, msgid: str, why: str | None, trace: Trace | None) -> None:
    """Redact a message that is only in the history, where an account alone proves who wrote it.

    ``name``: the channel or nick it was sent to; ``trace``: its author, None if no such message is found. Raises
    Failed if there is no such message or the user may not redact it.
    """
    target, channel = _target(ctx, name)
    if trace is None:
        raise _unknown(target, msgid)
    is_own = trace.account is not None and trace.account == ctx.user.account
    if not is_own and (channel is None or not channel.is_operator(ctx.user)):
        raise _forbidden(target, msgid)
    _take_back(ctx, target, msgid, why)


def _target(ctx: Context, name: str) -> tuple[str, Channel | None]:
    """Return the name of a channel or nick as it is spelled, and the channel (None for a nick).

    Raises Failed if there is no such target or the user is not in the channel.
    """
    if not is_channel(name):
        other = ctx.network.user(name)
        if other is None:
            raise _not_allowed(name)
        return other.nick, None
    channel = ctx.network.channel(name)
    if channel is None or ctx.user not in channel.members:
        raise _not_allowed(name)
    return channel.name, channel


def _find_in_channel(ctx: Context, name: str, msgid: str) -> tuple[str, Trace | None]:
    name, channel = _target(ctx, name)
    recent, user = ctx.parts.recent, ctx.user
    trace = recent.find(name, msgid)
    if trace is not None and channel is not None and not channel.is_operator(user) and not recent.is_by(trace, user):
        raise _forbidden(name, msgid)
    return name, trace


def _find_in_private(ctx: Context, name: str, msgid: str) -> tuple[str, Trace | None]:
    nick, _ = _target(ctx, name)
    other, user, recent = ctx.find_user(nick), ctx.user, ctx.parts.recent
    trace = recent.find(nick, msgid)
    if trace is not None and recent.is_by(trace, user):
        return nick, trace
    heard = recent.find(user.nick, msgid)
    if heard is not None and recent.is_by(heard, other):
        raise _forbidden(nick, msgid)
    # A message between others does not exist for this user.
    return nick, None


def _not_allowed(name: str) -> Failed:
    return Failed(VERB, "INVALID_TARGET", name, text=f"You cannot take back messages from {name}")


def _unknown(target: str, msgid: str) -> Failed:
    return Failed(VERB, "UNKNOWN_MSGID", target, msgid, text="There is no such message, or it is too old")


def _forbidden(target: str, msgid: str) -> Failed:
    text = "You may take back your own messages, and any in a channel you operate"
    return Failed(VERB, "REDACT_FORBIDDEN", target, msgid, text=text)
