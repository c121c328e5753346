"""``culture bridge``: IRC as MCP tools, for programs without a daemon."""

import os
from typing import Annotated

import typer

from culture.bridge.access import BridgeAccess
from culture.bridge.settings import BridgeSettings, WrongSetting, from_environment
from culture.cli import bridge_tokens, mcp_serve
from culture.cli.agent_access import open_to_agents
from culture.cli.agents.local_servers import server_user
from culture.cli.commands import Listing
from culture.cli.options import Choices
from culture.cli.output import fail
from culture.config import paths
from culture.protocol.vocabulary import Exit

_SERVING = "culture.bridge.server"

group = typer.Typer(help="Give programs without a daemon a place on IRC (MCP).", no_args_is_help=True)
group.add_typer(bridge_tokens.group, name="token", cls=Listing)

Host = Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Listen here, in place of MCP_HOST.")]
Port = Annotated[int | None, typer.Option("--port", min=0, max=65535, metavar="PORT", help="In place of MCP_PORT.")]


@group.command()
def serve(host: Host = None, port: Port = None) -> None:
    """Serve MCP at /mcp (Streamable HTTP) and /sse until told to stop.

    The environment says the rest: IRC_SERVER, IRC_PORT, IRC_NICK, MCP_PORT and others.
    """
    settings = _settings(mcp_host=host, mcp_port=port)
    scheme = "https" if settings.mcp_tls_cert else "http"

    def shown(taken: int) -> str:
        here = f"{scheme}://{mcp_serve.shown_place(settings.mcp_host, taken)}"
        return f"MCP at {settings.mcp_public_url or here}/mcp"

    serving = mcp_serve.loaded(_SERVING).serving(settings, BridgeAccess(), bridge_tokens.login_of)
    mcp_serve.over_http(serving, settings.mcp_host, settings.mcp_port, shown)


@group.command()
@open_to_agents
def stdio() -> None:
    """Serve the one program that started this, over standard input and output."""
    mcp_serve.over_stdio(mcp_serve.loaded(_SERVING).serve_stdio(_settings(), bridge_tokens.login_of))


def _settings(**more: object) -> BridgeSettings:
    """What the environment says; trusted_network may be said in culture.yaml too."""
    if paths.server_file().exists() and Choices().load().config.trusted_network:
        more["trusted_network"] = True
    if "IRC_SERVER_USER" not in os.environ:
        more["irc_server_user"] = server_user()
    try:
        return from_environment(os.environ, **more)
    except WrongSetting as wrong:
        fail(str(wrong), Exit.WRONG_CONFIGURATION)
