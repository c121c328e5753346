"""WHO and WHOX: one line for each user found (RFC 2812 §3.6.1, IRCv3 WHOX)."""

from collections.abc import Iterator
from typing import NamedTuple

from culture.protocol.message import Message
from culture.protocol.names import is_channel, matches, short_name
from culture.protocol.numerics import Numeric
from culture.server.commands import command
from culture.server.context import Context, as_word
from culture.server.core.isupport import PERSON
from culture.server.core.state import Channel, User, symbols
from culture.server.core.visibility import is_operator, sees_channel, sees_member, sees_user
from culture.server.handlers.whois import idle, is_bot, is_person

_ORDER = "tcuihsnfdlaor"  # order of the columns of WHOX
_LONGEST_TOKEN = 3  # digits


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
