"""The MCP servers of an agent, as Claude Code takes them."""

from collections.abc import Mapping

from claude_agent_sdk.types import McpServerConfig

from culture.clients.shared import mcp


def mcp_servers(said: object, environment: Mapping[str, str]) -> dict[str, McpServerConfig]:
    """The servers by their names, as they are written: on its command line, where anybody can read them, Claude Code
    gets no secret; it puts the variables of its environment there itself."""
    return {server.name: _config(server) for server in mcp.mcp_servers(said, environment)}


def _config(server: mcp.McpServer) -> McpServerConfig:
    if server.kind == "stdio":
        return {"type": "stdio", "command": server.command, "args": list(server.args), "env": dict(server.env)}
    if server.kind == "sse":
        return {"type": "sse", "url": server.url, "headers": dict(server.headers)}
    return {"type": "http", "url": server.url, "headers": dict(server.headers)}
