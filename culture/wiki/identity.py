"""The caller of a wiki request: the nick that the program states."""

from typing import Any
from urllib.parse import parse_qs

from mcp.server.mcpserver import Context
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from culture.wiki.errors import WikiRefused

HEADER = "X-Culture-Nick"
_NICK = "culture.nick"
"""Key of the nick in a request's ASGI scope."""
_AS = "/as/"


class CallerNick:
    """ASGI middleware that copies the nick that the client states into the scope of its request.

    Nothing proves the nick. The client states it in the header ``X-Culture-Nick`` or as ``?nick=`` in the address.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, with the nick that its client states in ``scope``."""
        await self._app(_with_nick(scope) if scope["type"] == "http" else scope, receive, send)


def caller_of(context: Context[Any, Any]) -> str:
    """Return the nick that the client of a tool call states; ``WikiRefused`` if it states none."""
    request = context.request_context.request
    nick = "" if request is None else str(request.scope.get(_NICK, ""))
    if not nick:
        raise WikiRefused(f"say who you are: ?nick=<your nick> in the address, or the header {HEADER}")
    return nick


def _with_nick(scope: Scope) -> Scope:
    """Return a copy of the scope with the nick that the request states in header, query or path.

    For /sse the nick becomes part of the path to which the client then posts its messages.
    """
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
