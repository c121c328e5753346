"""The server itself: MOTD, LUSERS, VERSION, TIME, INFO, ADMIN, LINKS, STATS; HELP on its verbs."""

import inspect
from collections.abc import Iterator

from culture.protocol.caps import lines
from culture.protocol.message import Message
from culture.protocol.names import matches, nearest
from culture.protocol.numerics import Numeric
from culture.server.commands import Command, command
from culture.server.context import Context, as_word
from culture.server.core.encode import wire
from culture.server.core.isupport import tokens
from culture.server.core.render import iso_time
from culture.server.core.visibility import hinted, is_operator
from culture.server.core.welcome import VERSION
from culture.server.core.welcome import lusers as lusers_rows
from culture.server.core.welcome import motd as motd_rows
from culture.server.errors import Refused

_INFO = (
    "An IRC server for people and agents, written in Python.",
    "WHO flags agents and bots with B, and WHOIS names them; @nick mentions a user.",
    "HELP lists the commands, HELP command explains one.",
    "Free software under the MIT licence.",
)
_ROOM = 380  # bytes of a line for the text
_INDEX = "index"
_WELCOME = "The verbs of this server; HELP verb explains one:"


@command("MOTD")
def motd(ctx: Context, message: Message) -> None:
    """``MOTD [server]``: show the message of the day."""
    _check_target(ctx, message)
    ctx.pull(motd_rows(ctx))


@command("LUSERS")
def lusers(ctx: Context, message: Message) -> None:
    """``LUSERS``: show the numbers of users, operators, channels and connections."""
    _check_target(ctx, message, position=1)
    ctx.pull(lusers_rows(ctx))


@command("VERSION")
def version(ctx: Context, message: Message) -> None:
    """``VERSION [server]``: show the version and the features (005)."""
    _check_target(ctx, message)
    ctx.reply(Numeric.RPL_VERSION, VERSION, ctx.router.name, ctx.config.description)
    for group in tokens(ctx.config, ctx.parts.skills.isupport()):
        ctx.reply(Numeric.RPL_ISUPPORT, *group)


@command("TIME", early=True)
def time(ctx: Context, message: Message) -> None:
    """``TIME [server]``: show the server's time in UTC; also before registration."""
    if message.params and ctx.session.user is None:
        raise Refused(Numeric.ERR_NOTREGISTERED)  # a nick as target would show strangers who is here
    _check_target(ctx, message)
    ctx.reply(Numeric.RPL_TIME, ctx.router.name, iso_time(ctx.now()))


@command("INFO")
def info(ctx: Context, message: Message) -> None:
    """``INFO [server]``: show what this server is."""
    _check_target(ctx, message)
    for text in (f"{VERSION}, up since {iso_time(ctx.parts.started)}", *_INFO):
        ctx.reply(Numeric.RPL_INFO, text=text)
    ctx.reply(Numeric.RPL_ENDOFINFO)


@command("ADMIN")
def admin(ctx: Context, message: Message) -> None:
    """``ADMIN [server]``: show whom to contact about this server."""
    _check_target(ctx, message)
    contact = ctx.config.admin
    rows = (
        (Numeric.RPL_ADMINLOC1, contact.location1),
        (Numeric.RPL_ADMINLOC2, contact.location2),
        (Numeric.RPL_ADMINEMAIL, contact.email),
    )
    if not any(text for _, text in rows):
        raise Refused(Numeric.ERR_NOADMININFO, ctx.router.name)
    ctx.reply(Numeric.RPL_ADMINME, ctx.router.name)
    for numeric, text in rows:
        if text:
            ctx.reply(numeric, text=text)


@command("LINKS")
def links(ctx: Context, message: Message) -> None:
    """``LINKS [mask]``: list the servers of the network and the way to each; for operators."""
    mask = message.params[-1] if message.params else "*"
    if is_operator(ctx.user):
        ctx.pull(row for name, row in _servers(ctx) if matches(mask, name))
    ctx.pull([ctx.numeric(Numeric.RPL_ENDOFLINKS, as_word(mask))])


def _servers(ctx: Context) -> Iterator[tuple[str, Message]]:
    own, servers = ctx.router.name, ctx.network.servers
    yield own, ctx.numeric(Numeric.RPL_LINKS, own, own, text=f"0 {ctx.config.description}")
    for name, description, hops, via in sorted(servers.values(), key=lambda each: (each.hops, each.name)):
        through = servers[via].name if via in servers else via
        yield name, ctx.numeric(Numeric.RPL_LINKS, name, through, text=f"{hops} {description}")


@command("STATS", params=1)
def stats(ctx: Context, message: Message) -> None:
    """``STATS u``: show the uptime; for operators ``o``: operator names, ``l``: the links."""
    _check_target(ctx, message, position=1)
    letter = message.params[0][:1]
    if letter == "u":
        ctx.reply(Numeric.RPL_STATSUPTIME, text=_uptime(int(ctx.now() - ctx.parts.started)))
    elif letter == "o":
        if not is_operator(ctx.user):
            raise Refused(Numeric.ERR_NOPRIVILEGES)
        for operator in ctx.config.operators:
            ctx.reply(Numeric.RPL_STATSOLINE, "O", "*", "*", operator.name)
    elif letter in ctx.parts.offers.stats:
        if not is_operator(ctx.user):
            raise Refused(Numeric.ERR_NOPRIVILEGES)
        for row in ctx.parts.offers.stats[letter](ctx):
            ctx.session.send(wire(row))
    ctx.reply(Numeric.RPL_ENDOFSTATS, as_word(letter))


def _uptime(seconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"Server Up {days} days {hours}:{minutes:02}:{seconds:02}"


def check_target(ctx: Context, name: str) -> None:
    """Raise Refused if a query is for another server.

    ``name``: a server, a mask, or a nick on it.
    """
    user = ctx.network.user(name)
    own = matches(name, ctx.router.name) if user is None else user.server == ctx.router.name
    if own:
        return
    elsewhere = user.server if user is not None else name
    if any(matches(elsewhere, server.name) for server in ctx.network.servers.values()):
        raise Refused(Numeric.ERR_NOSUCHSERVER, name, text=f"Connect to {as_word(elsewhere)} and ask there")
    raise Refused(Numeric.ERR_NOSUCHSERVER, name)


def _check_target(ctx: Context, message: Message, position: int = 0) -> None:
    if len(message.params) > position:
        check_target(ctx, message.params[position])


@command("HELP")
def on_help(ctx: Context, message: Message) -> None:
    """``HELP [verb]``: explain a verb; alone: list the verbs."""
    commands, subject = ctx.parts.commands, message.params[0] if message.params else ""
    if not subject or subject.lower() == _INDEX:
        ctx.pull(_page(ctx, _INDEX, [_WELCOME, *lines(sorted(commands), _ROOM)]))
    elif subject.upper() in commands:
        ctx.pull(_page(ctx, subject, explain(commands[subject.upper()])))
    else:
        suggestion = nearest(subject.upper(), commands)
        raise Refused(Numeric.ERR_HELPNOTFOUND, subject, text=hinted(Numeric.ERR_HELPNOTFOUND.text, suggestion))


@command("HELPOP")
def on_helpop(ctx: Context, message: Message) -> None:
    """``HELPOP [verb]``: the same as HELP."""
    on_help(ctx, message)


def _page(ctx: Context, subject: str, text: list[str]) -> Iterator[Message]:
    yield ctx.numeric(Numeric.RPL_HELPSTART, subject, text=text[0])
    for line in text[1:]:
        yield ctx.numeric(Numeric.RPL_HELPTXT, subject, text=line)
    yield ctx.numeric(Numeric.RPL_ENDOFHELP, subject)


def explain(verb: Command) -> list[str]:
    """Return the help text of a command as lines: its syntax, then what it does."""
    text = inspect.getdoc(verb.handler) or verb.verb
    usage, colon, rest = text.replace("``: ", "\0", 1).replace("``", "").partition("\0")
    paragraphs = [usage, rest] if colon else [usage]
    return [line for paragraph in "\n\n".join(paragraphs).split("\n\n") for line in lines(paragraph.split(), _ROOM)]
