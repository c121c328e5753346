"""The MCP servers of an agent, as the protocol takes them."""

from collections.abc import Mapping

from acp.schema import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio, SseMcpServer

from culture.clients.shared import mcp

McpServer = HttpMcpServer | SseMcpServer | McpServerStdio


def mcp_servers(said: object, environment: Mapping[str, str]) -> tuple[McpServer, ...]:
    """The servers with what is secret in them: they go through a pipe, which nobody else can read."""
    return tuple(_made(server.filled(environment)) for server in mcp.mcp_servers(said, environment))


def _made(server: mcp.McpServer) -> McpServer:
    if server.kind == "stdio":
        variables = [EnvVariable(name=name, value=value) for name, value in server.env.items()]
        return McpServerStdio(name=server.name, command=server.command, args=list(server.args), env=variables)
    headers = [HttpHeader(name=name, value=value) for name, value in server.headers.items()]
    if server.kind == "sse":
        return SseMcpServer(type="sse", name=server.name, url=server.url, headers=headers)
    return HttpMcpServer(type="http", name=server.name, url=server.url, headers=headers)
