"""An MCP server in operation: over HTTP, for many programs, or over standard input and output, for one."""

import asyncio
import os
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import RequestBodyLimitMiddleware, TransportSecuritySettings
from starlette.types import ASGIApp

_LOOK = 1.0
_CHECKED_AT_THE_DOOR = TransportSecuritySettings(enable_dns_rebinding_protection=False)


def pages(server: MCPServer[Any], longest: int, *, answers_at_once: bool = False) -> ASGIApp:
    """/mcp, and /sse with /messages/ for older clients, beside what the server has itself; no request is longer."""
    newer = server.streamable_http_app(
        json_response=answers_at_once, max_request_body_size=longest, transport_security=_CHECKED_AT_THE_DOOR
    )
    known = {getattr(route, "path", None) for route in newer.router.routes}
    older = server.sse_app(max_request_body_size=longest, transport_security=_CHECKED_AT_THE_DOOR)
    newer.router.routes.extend(each for each in older.routes if getattr(each, "path", None) not in known)
    return RequestBodyLimitMiddleware(newer, longest)


async def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve whoever started us, until they close our input or are gone."""
    parent = os.getppid()
    task = asyncio.create_task(server.run_stdio_async())
    try:
        # The other end of our input may be held open by somebody else than our parent.
        while not task.done() and os.getppid() == parent:
            await asyncio.wait({task}, timeout=_LOOK)
    finally:
        task.cancel()
