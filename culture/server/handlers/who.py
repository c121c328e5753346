"""Queries on users: WHO with WHOX, WHOIS, WHOWAS, ISON, USERHOST (RFC 2812 §3.6, §4.8, §4.9)."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from culture.protocol.caps import lines
from culture.protocol.message import Message
from culture.protocol.names import fold, is_channel, matches, short_name
from culture.protocol.numerics import Numeric
from culture.protocol.vocabulary import UserClass
from culture.server.commands import command
from culture.server.context import Context, as_word
from culture.server.core.isupport import PERSON
from culture.server.core.render import iso_time
from culture.server.core.state import Channel, User, same, symbols
from culture.server.core.visibility import is_operator, no_such_nick, sees_channel, sees_member, sees_user
from culture.server.errors import Refused
from culture.server.handlers.server_info import check_target
from culture.server.subscriptions.metadata_replies import whois_rows

_ORDER = "tcuihsnfdlaor"  # order of the columns of WHOX
_LONGEST_TOKEN = 3  # digits
_ROOM = 380  # bytes of a line for the list of names
_MOST_USERHOST = 5


class WhoQuery(NamedTuple):
    """A WHO request: mask, whether it is for operators only, and the columns and token of WHOX."""

    mask: str
    operators: bool
    columns: str
    token: str


class WhoRow(NamedTuple):
    """A user that WHO found, and the channel that was searched (None: no channel)."""

    user: User
    channel: Channel | None


@command("WHO")
def who(ctx: Context, message: Message) -> None:
    """``WHO mask [o] [%columns,token]``: list a channel's members, a nick, or matching users.

    The flags of each: H here or G away, * operator, @ and + the rank in the channel, B an agent or bot, P a person with
    an account. With o only operators. The columns of WHOX: t token, c channel, u user name, i address, h host, s
    server, n nick, f flags, d distance, l idle seconds, a account, o operator level, r real name.
    """
    mask, *options = message.params or ("*",)
    query = _query(mask or "*", options)
    ctx.pull(ctx.bounded(_rows(ctx, query), "WHO", query.mask))
    ctx.pull([ctx.numeric(Numeric.RPL_ENDOFWHO, as_word(query.mask))])


def _query(mask: str, options: list[str]) -> WhoQuery:
    words = ",".join(options)
    flags, _, chosen = words.partition("%")
    columns, _, token = chosen.partition(",")
    fits = token.isascii() and token.isdigit() and len(token) <= _LONGEST_TOKEN
    selected = "".join(column for column in _ORDER if column in columns)
    return WhoQuery(mask, "o" in flags, selected, token if fits else "0")


def _rows(ctx: Context, query: WhoQuery) -> Iterator[Message]:
    for each in _matches(ctx, query.mask):
        if query.operators and not is_operator(each.user):
            continue
        columns = _columns(ctx, each, query.token)
        if query.columns:
            yield ctx.numeric(Numeric.RPL_WHOSPCRPL, *(columns[column] for column in query.columns))
        else:
            yield ctx.numeric(
                Numeric.RPL_WHOREPLY, *(columns[column] for column in "cuhsnf"), text=f"{columns['d']} {columns['r']}"
            )


def _matches(ctx: Context, mask: str) -> Iterator[WhoRow]:
    """Yield the users that match the mask of a WHO; an exact nick finds invisible users too."""
    asker, network = ctx.user, ctx.network
    if is_channel(mask):
        channel = network.channel(mask)
        if channel is not None and sees_channel(asker, channel):
            for user in list(channel.members):
                # The answer takes as long as the client reads it: skip members who left meanwhile.
                if user in channel.members and sees_member(asker, user, channel):
                    yield WhoRow(user, channel)
        return
    exact = network.user(mask)
    if exact is not None:
        yield WhoRow(exact, None)
        return
    every = mask in ("*", "0")
    for user in list(network.users.values()):
        if sees_user(asker, user) and (every or _fits(mask, user)):
            yield WhoRow(user, None)


def _fits(mask: str, user: User) -> bool:
    if "!" in mask or "@" in mask:
        return matches(mask, user.source)
    return any(matches(mask, name) for name in (user.nick, user.username, user.host, user.server, user.realname))


def _columns(ctx: Context, row: WhoRow, token: str) -> dict[str, str]:
    """Return the values of all WHOX columns for a user, each by the letter of its column.

    ``token``: the token of the request, which the reply repeats.
    """
    user, channel = row
    return {
        "t": token,
        "c": channel.name if channel is not None else "*",
        "u": user.username,
        "i": user.host,
        "h": user.host,
        "s": user.server,
        "n": user.nick,
        "f": _flags(ctx, row),
        "d": str(_distance(ctx, user)),
        "l": str(idle(ctx, user) or 0),
        "a": user.account or "0",
        "o": "n/a",
        "r": user.realname,
    }


def _distance(ctx: Context, user: User) -> int:
    """Return the number of links between this server and the user's server."""
    server = ctx.network.servers.get(short_name(user.server)) if user.server != ctx.router.name else None
    return server.hops if server is not None else 0


def _flags(ctx: Context, row: WhoRow) -> str:
    user, channel = row
    status = channel.members.get(user, "") if channel is not None else ""
    return "".join(
        (
            "H" if user.away is None else "G",
            "*" if is_operator(user) else "",
            symbols(status, "multi-prefix" in ctx.session.caps.enabled),
            "B" if is_bot(user) else "",
            PERSON if is_person(user) else "",
        )
    )


@command("WHOIS")
def whois(ctx: Context, message: Message) -> None:
    """``WHOIS [server] nick``: show all about a user, and whether it is an agent, bot or person."""
    *target, nick = message.params[:2] or ("",)
    if not nick:
        raise Refused(Numeric.ERR_NONICKNAMEGIVEN)
    if target and not same(target[0], nick):
        check_target(ctx, target[0])
    ctx.pull(_whois(ctx, nick))


def _whois(ctx: Context, nick: str) -> Iterator[Message]:
    user = ctx.network.user(nick)
    if user is None:
        yield ctx.numeric(Numeric.ERR_NOSUCHNICK, as_word(nick), text=no_such_nick(ctx.network, ctx.user, nick))
    else:
        yield from _about(ctx, user)
    yield ctx.numeric(Numeric.RPL_ENDOFWHOIS, as_word(nick))


def _about(ctx: Context, user: User) -> Iterator[Message]:
    nick = user.nick
    yield ctx.numeric(Numeric.RPL_WHOISUSER, nick, user.username, user.host, "*", user.realname)
    for line in lines(_channels(ctx, user), _ROOM):
        if line:
            yield ctx.numeric(Numeric.RPL_WHOISCHANNELS, nick, text=line)
    yield ctx.numeric(Numeric.RPL_WHOISSERVER, nick, user.server, _description(ctx, user.server))
    if user.away is not None:
        yield ctx.numeric(Numeric.RPL_AWAY, nick, text=user.away)
    if is_operator(user):
        yield ctx.numeric(Numeric.RPL_WHOISOPERATOR, nick)
    if is_bot(user):
        yield ctx.numeric(
            Numeric.RPL_WHOISBOT, nick, text=f"is {'an agent' if user.kind == UserClass.AGENT else 'a bot'}"
        )
    if is_person(user):
        yield ctx.numeric(Numeric.RPL_WHOISSPECIAL, nick, text="is a person")
    if user.account is not None:
        yield ctx.numeric(Numeric.RPL_WHOISACCOUNT, nick, user.account)
    sessions = ctx.router.sessions.get(user)
    for via in sorted({each.acting.via for each in sessions or () if each.acting is not None and each.acting.via}):
        yield ctx.numeric(Numeric.RPL_WHOISSPECIAL, nick, text=f"is here via {via}")
    if sessions and all(session.tls is not None for session in sessions):
        yield ctx.numeric(Numeric.RPL_WHOISSECURE, nick)
    yield from whois_rows(ctx, user)
    quiet = idle(ctx, user)
    if quiet is not None:
        yield ctx.numeric(Numeric.RPL_WHOISIDLE, nick, str(quiet), str(int(user.since)))


def _description(ctx: Context, name: str) -> str:
    if name == ctx.router.name:
        return ctx.config.description
    server = ctx.network.servers.get(short_name(name))
    return server.description if server is not None else name


def _channels(ctx: Context, user: User) -> list[str]:
    every = "multi-prefix" in ctx.session.caps.enabled
    channels = [channel for channel in user.channels if sees_member(ctx.user, user, channel)]
    return [
        symbols(channel.members.get(user, ""), every) + channel.name
        for channel in sorted(channels, key=lambda each: each.name)
    ]


def is_bot(user: User) -> bool:
    """Return whether WHO and WHOIS show the user as a program: by class, or by mode +B."""
    return user.is_agent


def is_person(user: User) -> bool:
    """Return whether WHO and WHOIS show the user as a person, which only an account proves."""
    return user.account_kind == UserClass.HUMAN


def idle(ctx: Context, user: User) -> int | None:
    """Return the seconds since the user last sent a message; None for users of other servers."""
    sessions = ctx.router.sessions.get(user)
    return max(0, int(ctx.now() - max(session.spoke for session in sessions))) if sessions else None


@command("WHOWAS")
def whowas(ctx: Context, message: Message) -> None:
    """``WHOWAS nick [count]``: show who had a nick, the latest first."""
    nick, *limit = message.params or ("",)
    if not nick:
        raise Refused(Numeric.ERR_NONICKNAMEGIVEN)
    ctx.pull(_whowas(ctx, nick, _count(limit[0]) if limit else None))


def _whowas(ctx: Context, nick: str, count: int | None) -> Iterator[Message]:
    folded = fold(nick)
    entries = list(islice((gone for gone in reversed(ctx.network.gone) if fold(gone.nick) == folded), count))
    if not entries:
        yield ctx.numeric(Numeric.ERR_WASNOSUCHNICK, as_word(nick))
    for gone in entries:
        yield ctx.numeric(Numeric.RPL_WHOWASUSER, gone.nick, gone.username, gone.host, "*", gone.realname)
        yield ctx.numeric(Numeric.RPL_WHOISSERVER, gone.nick, gone.server, iso_time(gone.at))
    yield ctx.numeric(Numeric.RPL_ENDOFWHOWAS, as_word(nick))


def _count(text: str) -> int | None:
    """Return the parameter of WHOWAS as the number of entries to show.

    None, which stands for all, if it is no positive number (RFC 2812 §3.6.3).
    """
    return int(text[:9]) if text.isascii() and text.isdigit() and text.strip("0") else None


@command("ISON", params=1)
def ison(ctx: Context, message: Message) -> None:
    """``ISON nick nick``: show which of these nicks are online."""
    here = (user.nick for nick in _nicks(message) if (user := ctx.network.user(nick)) is not None)
    for line in lines(here, _ROOM):
        ctx.reply(Numeric.RPL_ISON, line)


@command("USERHOST", params=1)
def userhost(ctx: Context, message: Message) -> None:
    """``USERHOST nick nick``: show user and host of up to five nicks; * operator, - away."""
    users = (ctx.network.user(nick) for nick in _nicks(message)[:_MOST_USERHOST])
    for line in lines((_userhost(user) for user in users if user is not None), _ROOM):
        ctx.reply(Numeric.RPL_USERHOST, line)


def _userhost(user: User) -> str:
    operator = "*" if is_operator(user) else ""
    return f"{user.nick}{operator}={'+' if user.away is None else '-'}{user.username}@{user.host}"


def _nicks(message: Message) -> list[str]:
    return [nick for param in message.params for nick in param.split(" ") if nick]
