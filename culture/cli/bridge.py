"""``culture bridge``: serves IRC as MCP tools, and manages the tokens of their users."""

import os
from datetime import datetime
from typing import Annotated

import typer

from culture.bridge.access import LIFETIME, BridgeAccess, BrokenAccessFile, Grant
from culture.bridge.settings import BridgeSettings, WrongSetting, from_environment
from culture.cli import mcp_serve
from culture.cli.agent_access import open_to_agents
from culture.cli.agents.agent_login import NoLogin, prepare_login, read_token
from culture.cli.agents.select_agents import load
from culture.cli.commands import Listing
from culture.cli.humanize import parser
from culture.cli.local_servers import own_server, server_user
from culture.cli.options import AsJson, Choices
from culture.cli.output import as_json as in_json
from culture.cli.output import fail
from culture.clients.shared import pidfile
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.values import channel_name, seconds
from culture.protocol.names import fold, reserved, valid_nick
from culture.protocol.vocabulary import Exit

tokens = typer.Typer(help="Manage the tokens of the bridge.", no_args_is_help=True)

Nick = Annotated[
    str, typer.Argument(metavar="NICK", show_default=False, help="Nick to speak as, for example ori-delegate.")
]
Also = Annotated[
    list[str] | None, typer.Option("--also", metavar="NICK", help="Another nick it may use; may be repeated.")
]
Channels = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="CHANNEL", help="Channel to join at the start; may be repeated."),
]
Lifetime = Annotated[
    float, typer.Option("--for", metavar="TIME", parser=parser(seconds), help="Lifetime of the token, for example 30d.")
]


@tokens.command()
def add(nick: Nick, also: Also = None, channel: Channels = None, lifetime: Lifetime = LIFETIME) -> None:
    """Make a token for a program that speaks as this nick.

    It is printed only once; the program sends it as `Authorization: Bearer …`. On this machine's own server the nick
    gets an account of class agent.
    """
    names, channels = _names(nick, also), _channels(channel)
    try:
        grant, secret = BridgeAccess().issue(names, channels, lifetime)
    except BrokenAccessFile as broken:
        fail(str(broken))
    typer.echo(secret)
    typer.echo(f"Save it now: it is not shown again. It is token {grant.id}, {_describe(grant)}.", err=True)
    typer.echo("Restart a bridge that was started before it had any token: it lets nobody in.", err=True)


@tokens.command()
def code(nick: Nick, also: Also = None, channel: Channels = None) -> None:
    """Make a one-time code for the consent page, so that a remote program can use this nick.

    The code is valid for ten minutes.
    """
    names, channels = _names(nick, also), _channels(channel)
    try:
        typer.echo(BridgeAccess().make_code(names, channels))
    except BrokenAccessFile as broken:
        fail(str(broken))


@tokens.command("list")
@open_to_agents
def show(as_json: AsJson = False) -> None:
    """List all tokens, without their secrets."""
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
        typer.echo(f"{grant.id}  {_describe(grant)}")


def _entry(grant: Grant) -> dict[str, object]:
    """Return a token of the bridge as a dict for --json, without its secret."""
    return {
        "id": grant.id,
        "names": list(grant.names),
        "channels": list(grant.channels),
        "client": grant.client or None,
        "made": grant.made,
        "expires": grant.lasts_until,
    }


@tokens.command()
def revoke(
    word: Annotated[
        str,
        typer.Argument(metavar="ID|NICK", show_default=False, help="Id of a token, or a nick for all of its tokens."),
    ],
) -> None:
    """Revoke a token, or all tokens and codes of a nick, at once."""
    words = (word, _full(word, _prefix(load().server)))
    try:
        number = BridgeAccess().revoke(*words)
        left = [grant for grant in BridgeAccess().grants() if set(map(fold, words)) & set(map(fold, grant.names))]
    except BrokenAccessFile as broken:
        fail(str(broken))
    for grant in left:
        typer.echo(f"{grant.id} is another's token and {_describe(grant)}.", err=True)
    if not number:
        fail(f"there is no token {word}; `culture bridge token list` shows them")
    typer.echo(f"{number} revoked.")


def login_of(nick: str) -> str | None:
    """Return the account token with which the bridge logs in as ``nick``; None if there is none.

    None also for a nick that has a running daemon, since the daemon uses that token.
    """
    return None if _has_daemon(nick) else read_token(nick)


def _has_daemon(nick: str) -> bool:
    return fold(nick) in map(fold, pidfile.all_running())


def _describe(grant: Grant) -> str:
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
    return tuple(_prepare_nick(_full(name, prefix), agents, address) for name in (nick, *(also or ())))


def _prefix(address: ServerAddress) -> str:
    server = own_server(address)
    return server.account_prefix if server is not None else ""


def _full(name: str, prefix: str) -> str:
    return f"{prefix}-{name}" if prefix and not fold(name).startswith(f"{fold(prefix)}-") else name


def _prepare_nick(nick: str, agents: set[str], address: ServerAddress) -> str:
    """Make sure that the bridge can log in as a nick; return the nick.

    ``agents``: the nicks of agents.yaml, in lower case. ``address``: the server. The command ends if programs may not
    use that nick.
    """
    if not valid_nick(nick) or reserved(nick):
        fail(f"{nick} is not a valid nick", Exit.USAGE)
    if fold(nick) in agents or _has_daemon(nick):
        fail(f"{nick} is an agent with a daemon of its own")
    try:
        remaining_step = prepare_login(nick, address)
    except NoLogin as refused:
        fail(str(refused))
    if remaining_step:
        typer.echo(remaining_step, err=True)
    return nick


def _channels(names: list[str] | None) -> tuple[str, ...]:
    try:
        return tuple(map(channel_name, names or ()))
    except ValueError as wrong:
        fail(str(wrong), Exit.USAGE)


_SERVING = "culture.bridge.server"

group = typer.Typer(help="Connect other programs to IRC through MCP.", no_args_is_help=True)
group.add_typer(tokens, name="token", cls=Listing)

Host = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on; overrides MCP_HOST.")
]
Port = Annotated[
    int | None, typer.Option("--port", min=0, max=65535, metavar="PORT", help="Port to listen on; overrides MCP_PORT.")
]


@group.command()
def serve(host: Host = None, port: Port = None) -> None:
    """Serve MCP at /mcp (Streamable HTTP) and /sse until it is stopped.

    The other settings come from the environment: IRC_SERVER, IRC_PORT, IRC_NICK, MCP_PORT and more.
    """
    settings = _settings(mcp_host=host, mcp_port=port)
    scheme = "https" if settings.mcp_tls_cert else "http"

    def message(port_used: int) -> str:
        here = f"{scheme}://{mcp_serve.format_address(settings.mcp_host, port_used)}"
        return f"MCP at {settings.mcp_public_url or here}/mcp"

    serving = mcp_serve.load_module(_SERVING).serving(settings, BridgeAccess(), login_of)
    mcp_serve.serve_http(serving, settings.mcp_host, settings.mcp_port, message)


@group.command()
@open_to_agents
def stdio() -> None:
    """Serve the program that started this command, over standard input and output."""
    mcp_serve.serve_stdio(mcp_serve.load_module(_SERVING).serve_stdio(_settings(), login_of))


def _settings(**more: object) -> BridgeSettings:
    """Return the bridge's settings from the environment.

    ``more``: values by field name that override them. trusted_network may also come from culture.yaml. The command ends
    if a value is invalid.
    """
    if paths.server_file().exists() and Choices().load().config.trusted_network:
        more["trusted_network"] = True
    if "IRC_SERVER_USER" not in os.environ:
        more["irc_server_user"] = server_user()
    try:
        return from_environment(os.environ, **more)
    except WrongSetting as wrong:
        fail(str(wrong), Exit.WRONG_CONFIGURATION)
