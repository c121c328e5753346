"""As whom a program calls a wiki: whoever it says that it is."""

from typing import Any
from urllib.parse import parse_qs

from mcp.server.mcpserver import Context
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from culture.wiki.errors import WikiRefused

HEADER = "X-Culture-Nick"
_NICK = "culture.nick"
"""Where a request's nick is in its scope."""
_AS = "/as/"


class Named:
    """Notes of each request who says that they call."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on with its nick."""
        await self._app(_named(scope) if scope["type"] == "http" else scope, receive, send)


def caller_of(context: Context[Any, Any]) -> str:
    """The nick of a call; Refused where none was said."""
    request = context.request_context.request
    nick = "" if request is None else str(request.scope.get(_NICK, ""))
    if not nick:
        raise WikiRefused(f"say who you are: ?nick=<your nick> in the address, or the header {HEADER}")
    return nick


def _named(scope: Scope) -> Scope:
    """The request with its nick; one that opens /sse is told to post where the nick is part of the path."""
    path, changed = scope["path"], dict(scope)
    header = Headers(scope=scope).get(HEADER)
    [nick] = parse_qs(scope["query_string"].decode("latin-1")).get("nick", [""])[:1]
    if path.startswith(_AS):
        nick, _, _ = path.removeprefix(_AS).partition("/")
    nick = header or nick
    if path == "/sse" or path.startswith(_AS):
        changed["root_path"] = f"{_AS}{nick}" if nick else ""
    changed[_NICK] = nick
    return changed
