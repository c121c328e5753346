"""Presence: AWAY, SETNAME, and MONITOR, which watches when users come and go (IRCv3)."""

from collections.abc import Iterable, Iterator
from itertools import chain

from culture.protocol.message import Message
from culture.protocol.names import valid_nick
from culture.protocol.numerics import Numeric
from culture.protocol.split import clip, room
from culture.server.commands import command
from culture.server.context import Context
from culture.server.errors import Failed, Refused
from culture.server.events import AwaySet, RealnameSet
from culture.server.subscriptions.metadata_replies import show_synced
from culture.server.subscriptions.monitor import wrapped


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


@command("MONITOR", params=1)
def monitor(ctx: Context, message: Message) -> None:
    """``MONITOR + nick,nick``: watch nicks.

    ``-`` stops watching nicks, ``C`` all; ``L`` lists the watched nicks, ``S`` says who of them is online.
    """
    action, *words = message.params
    monitors, session = ctx.parts.monitors, ctx.session
    match action.upper():
        case "+":
            _watch(ctx, _nicks(words))
        case "-":
            for nick in _nicks(words):
                monitors.remove(session, nick)
        case "C":
            monitors.clear(session)
        case "L":
            ctx.pull(_watched(ctx, monitors.watched(session)))
        case "S":
            ctx.pull(_statuses(ctx, monitors.watched(session)))
        case _:
            raise Failed("MONITOR", "INVALID_SUBCOMMAND", action, text="MONITOR takes +, -, C, L or S")


def _nicks(words: list[str]) -> list[str]:
    if not words:
        raise Refused(Numeric.ERR_NEEDMOREPARAMS, "MONITOR")
    return list(dict.fromkeys(nick for nick in words[0].split(",") if nick))


def _watch(ctx: Context, nicks: list[str]) -> None:
    limits = ctx.config.limits
    added, refused = [], []
    for nick in nicks:
        if not valid_nick(nick, limits.nick_length):
            ctx.refuse(Refused(Numeric.ERR_ERRONEUSNICKNAME, nick))
        elif ctx.parts.monitors.add(ctx.session, nick, limits.monitor):
            added.append(nick)
        else:
            refused.append(nick)
    full = [ctx.numeric(Numeric.ERR_MONLISTFULL, str(limits.monitor), names) for names in wrapped(refused)]
    ctx.pull(chain(_statuses(ctx, added), full))
    for nick in added:
        if (user := ctx.network.user(nick)) is not None:
            show_synced(ctx, user)


def _watched(ctx: Context, nicks: Iterable[str]) -> Iterator[Message]:
    for names in wrapped(nicks):
        yield ctx.numeric(Numeric.RPL_MONLIST, text=names)
    yield ctx.numeric(Numeric.RPL_ENDOFMONLIST)


def _statuses(ctx: Context, nicks: list[str]) -> Iterator[Message]:
    """Yield 730 lines with those of the nicks that are online, and 731 lines with the others."""
    here = {nick: user for nick in nicks if (user := ctx.network.user(nick)) is not None}
    for names in wrapped(user.source for user in here.values()):
        yield ctx.numeric(Numeric.RPL_MONONLINE, text=names)
    for names in wrapped(nick for nick in nicks if nick not in here):
        yield ctx.numeric(Numeric.RPL_MONOFFLINE, text=names)
