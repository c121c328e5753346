"""Serves an MCP server: as an ASGI application for many programs, or over stdio for one."""

import asyncio
import os
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import RequestBodyLimitMiddleware, TransportSecuritySettings
from starlette.types import ASGIApp

_PARENT_CHECK = 1.0
_CHECKED_BY_ADMISSION = TransportSecuritySettings(enable_dns_rebinding_protection=False)


def pages(server: MCPServer[Any], longest: int, *, answers_at_once: bool = False) -> ASGIApp:
    """Return an ASGI application that serves an MCP server at /mcp, /sse and /messages/.

    ``longest``: limit of a request in bytes. ``answers_at_once``: whether /mcp answers with plain JSON, not with an
    event stream.
    """
    app = server.streamable_http_app(
        json_response=answers_at_once, max_request_body_size=longest, transport_security=_CHECKED_BY_ADMISSION
    )
    paths = {getattr(route, "path", None) for route in app.router.routes}
    legacy = server.sse_app(max_request_body_size=longest, transport_security=_CHECKED_BY_ADMISSION)
    app.router.routes.extend(each for each in legacy.routes if getattr(each, "path", None) not in paths)
    return RequestBodyLimitMiddleware(app, longest)


async def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve an MCP server to the parent process over stdio until stdin is closed."""
    parent = os.getppid()
    task = asyncio.create_task(server.run_stdio_async())
    try:
        # Another process may hold our input open after the parent has ended.
        while not task.done() and os.getppid() == parent:
            await asyncio.wait({task}, timeout=_PARENT_CHECK)
    finally:
        task.cancel()
