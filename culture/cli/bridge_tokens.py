"""``culture bridge token``: who may speak through the bridge."""

from datetime import datetime
from typing import Annotated

import typer

from culture.bridge.access import LIFETIME, BridgeAccess, BrokenAccessFile
from culture.bridge.token_file import Grant
from culture.cli.agent_access import open_to_agents
from culture.cli.agents.agent_login import NoLogin, prepare, token
from culture.cli.agents.local_servers import own_server
from culture.cli.agents.select_agents import load
from culture.cli.humanize import option
from culture.cli.options import AsJson
from culture.cli.output import as_json as in_json
from culture.cli.output import fail
from culture.clients.shared import pidfile
from culture.config.agents import ServerAddress
from culture.config.values import channel_name, seconds
from culture.protocol.names import fold, reserved, valid_nick
from culture.protocol.vocabulary import Exit

group = typer.Typer(help="Say who may speak through the bridge.", no_args_is_help=True)

Nick = Annotated[str, typer.Argument(metavar="NICK", show_default=False, help="Who speaks, for example ori-delegate.")]
Also = Annotated[
    list[str] | None, typer.Option("--also", metavar="NICK", help="A further nick it may speak as; may be repeated.")
]
Channels = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="CHANNEL", help="A channel it is in from the beginning; may be repeated."),
]
Lifetime = Annotated[
    float, typer.Option("--for", metavar="TIME", parser=option(seconds), help="How long, for example 30d.")
]


@group.command()
def add(nick: Nick, also: Also = None, channel: Channels = None, lifetime: Lifetime = LIFETIME) -> None:
    """Make a token for a program that speaks as this nick.

    It is printed this once; the program sends it as `Authorization: Bearer …`.
    On this machine's own server the nick gets an account of class agent.
    """
    names, channels = _names(nick, also), _channels(channel)
    try:
        grant, secret = BridgeAccess().issue(names, channels, lifetime)
    except BrokenAccessFile as broken:
        fail(str(broken))
    typer.echo(secret)
    typer.echo(f"Keep it: it is not shown again. It is token {grant.id}, {_described(grant)}.", err=True)
    typer.echo("A bridge that was started before there were tokens lets nobody in: start it anew.", err=True)


@group.command()
def code(nick: Nick, also: Also = None, channel: Channels = None) -> None:
    """Make a code for the consent page, with which a remote program may speak as this nick.

    It holds for ten minutes, and once.
    """
    names, channels = _names(nick, also), _channels(channel)
    try:
        typer.echo(BridgeAccess().make_code(names, channels))
    except BrokenAccessFile as broken:
        fail(str(broken))


@group.command("list")
@open_to_agents
def show(as_json: AsJson = False) -> None:
    """Show all tokens, never their secrets."""
    try:
        grants = sorted(BridgeAccess().grants(), key=lambda each: each.made)
    except BrokenAccessFile as broken:
        fail(str(broken))
    if as_json:
        typer.echo(in_json([_entry(grant) for grant in grants]))
        return
    if not grants:
        typer.echo("There are no tokens. Make one with `culture bridge token add NICK`.")
    for grant in grants:
        typer.echo(f"{grant.id}  {_described(grant)}")


def _entry(grant: Grant) -> dict[str, object]:
    """What may be known of a token; nothing of its secret."""
    return {
        "id": grant.id,
        "names": list(grant.names),
        "channels": list(grant.channels),
        "client": grant.client or None,
        "made": grant.made,
        "expires": grant.lasts_until,
    }


@group.command()
def revoke(
    word: Annotated[str, typer.Argument(metavar="ID|NICK", show_default=False, help="The token, or all of this nick.")],
) -> None:
    """Take a token back; from this moment it opens nothing. Codes of the nick are taken back, too."""
    words = (word, _full(word, _prefix(load().server)))
    try:
        number = BridgeAccess().revoke(*words)
        left = [grant for grant in BridgeAccess().grants() if set(map(fold, words)) & set(map(fold, grant.names))]
    except BrokenAccessFile as broken:
        fail(str(broken))
    for grant in left:
        typer.echo(f"{grant.id} is another's token and {_described(grant)}.", err=True)
    if not number:
        fail(f"there is no token {word}; `culture bridge token list` shows them")
    typer.echo(f"{number} taken back.")


def login_of(nick: str) -> str | None:
    """With what a nick of the bridge logs in; None where a daemon does so, be it that of a team's member."""
    return None if _has_daemon(nick) else token(nick)


def _has_daemon(nick: str) -> bool:
    return fold(nick) in map(fold, pidfile.all_running())


def _described(grant: Grant) -> str:
    first, *others = grant.names
    words = [f"speaks as {first}"]
    if others:
        words.append(f"and as {', '.join(others)}")
    if grant.channels:
        words.append(f"is in {', '.join(grant.channels)}")
    if grant.client:
        words.append("by consent")
    until = datetime.fromtimestamp(grant.lasts_until).astimezone()
    words.append(f"until {until:%Y-%m-%d %H:%M}" if until > datetime.now().astimezone() else "expired")
    return ", ".join(words)


def _names(nick: str, also: list[str] | None) -> tuple[str, ...]:
    settings = load()
    address = settings.server
    prefix = _prefix(address)
    agents = {fold(agent.nick) for agent in settings.agents}
    return tuple(_ready(_full(name, prefix), agents, address) for name in (nick, *(also or ())))


def _prefix(address: ServerAddress) -> str:
    server = own_server(address)
    return server.account_prefix if server is not None else ""


def _full(name: str, prefix: str) -> str:
    return f"{prefix}-{name}" if prefix and not fold(name).startswith(f"{fold(prefix)}-") else name


def _ready(nick: str, agents: set[str], address: ServerAddress) -> str:
    """The nick, when a program may have it; with a login where the server is ours."""
    if not valid_nick(nick) or reserved(nick):
        fail(f"{nick} is not a nick that one can have", Exit.USAGE)
    if fold(nick) in agents or _has_daemon(nick):
        fail(f"{nick} is an agent with a daemon of its own, which speaks for it")
    try:
        told = prepare(nick, address)
    except NoLogin as refused:
        fail(str(refused))
    if told:
        typer.echo(told, err=True)
    return nick


def _channels(names: list[str] | None) -> tuple[str, ...]:
    try:
        return tuple(map(channel_name, names or ()))
    except ValueError as wrong:
        fail(str(wrong), Exit.USAGE)
