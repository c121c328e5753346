"""Settings of the ACP backend, validated before anything is started."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from acp.schema import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio, SseMcpServer

from culture.clients.acp.quirks import DEFAULT_COMMAND, quirks_of
from culture.clients.shared import mcp
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.options import chosen
from culture.clients.shared.sandbox.needs import ProgramNeeds

McpServer = HttpMcpServer | SseMcpServer | McpServerStdio


def mcp_servers(setting: object, environment: Mapping[str, str]) -> tuple[McpServer, ...]:
    """Return the MCP servers of an agent's settings, with secrets filled in.

    ``setting``: the value of ``mcp_servers`` in agents.yaml; ``environment``: has the secrets. The servers are sent
    to the agent through a private pipe.
    """
    return tuple(_made(server.filled(environment)) for server in mcp.mcp_servers(setting, environment))


def _made(server: mcp.McpServer) -> McpServer:
    if server.kind == "stdio":
        variables = [EnvVariable(name=name, value=value) for name, value in server.env.items()]
        return McpServerStdio(name=server.name, command=server.command, args=list(server.args), env=variables)
    headers = [HttpHeader(name=name, value=value) for name, value in server.headers.items()]
    if server.kind == "sse":
        return SseMcpServer(type="sse", name=server.name, url=server.url, headers=headers)
    return HttpMcpServer(type="http", name=server.name, url=server.url, headers=headers)


class Permissions(StrEnum):
    """Policy for the agent's permission requests: allow all, ask people, or deny all."""

    ALLOW = "allow"
    ASK = "ask"
    """Ask people."""
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class AcpOptions:
    """Validated settings of an ACP agent."""

    command: tuple[str, ...] = DEFAULT_COMMAND
    mode: str | None = None
    permissions: Permissions = Permissions.ALLOW
    mcp_servers: tuple[McpServer, ...] = ()


def options(given: Mapping[str, object], environment: Mapping[str, str]) -> AcpOptions:
    """Return an agent's settings for ACP, validated, with environment variables filled in.

    ``given``: the settings as agents.yaml has them. ``WrongConfiguration`` on mistakes.
    """
    return AcpOptions(
        command=_command(given.get("acp_command")),
        mode=_text("acp_mode", given.get("acp_mode")),
        permissions=chosen(given, "permissions", tuple(Permissions)),
        mcp_servers=mcp_servers(given.get("mcp_servers"), environment),
    )


def needs(given: Mapping[str, object]) -> ProgramNeeds:
    """Return what the configured program needs in a sandbox: files, logins, variables.

    ``given``: the agent's settings, which name the program. The result is empty for an unknown program.
    """
    quirks = quirks_of(_command(given.get("acp_command")))
    known = quirks.needs
    return replace(known, logins=(*known.logins, *quirks.logins), variables=(*known.variables, *quirks.keys))


def _command(given: object) -> tuple[str, ...]:
    if given is None:
        return DEFAULT_COMMAND
    if not isinstance(given, list | tuple) or not given or not all(isinstance(word, str) and word for word in given):
        raise WrongConfiguration('acp_command must be a list of words, as in ["opencode", "acp"]')
    return tuple(given)


def _text(place: str, given: object) -> str | None:
    if given is not None and not (isinstance(given, str) and given):
        raise WrongConfiguration(f"{place} must be a text")
    return given
