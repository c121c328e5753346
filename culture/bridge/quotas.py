"""Quotas: limits the open requests and the sessions of each token."""

import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from culture.bridge.access import digest
from culture.lib.ratelimit import SlidingWindow, Slots

AT_ONCE = 64
"""Limit of open requests per token, streams included."""
SESSIONS, SESSION_LIFETIME = 100, 1800.0
"""Limit of sessions opened per token within the lifetime (s) of an unused session."""
_SESSION = "mcp-session-id"
_REMEMBERED = 1024


class TokenQuotas:
    """ASGI middleware that limits the open requests and the MCP sessions of each bearer token."""

    def __init__(self, app: ASGIApp, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock = clock
        self._open = Slots()
        self._sessions = SlidingWindow(_REMEMBERED)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 429 if its bearer token has too many requests or sessions."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        key = digest(headers.get("authorization", ""))
        has_session = _SESSION in headers

        async def send_and_count(message: Message) -> None:
            is_start = message["type"] == "http.response.start"
            if is_start and not has_session and _SESSION in Headers(raw=message["headers"]):
                self._sessions.add(key, self._clock())
            await send(message)

        if not self._open.take(key, AT_ONCE):
            await PlainTextResponse(f"at most {AT_ONCE} requests at once", 429)(scope, receive, send)
            return
        try:
            if not has_session and self._sessions.count(key, SESSION_LIFETIME, self._clock()) >= SESSIONS:
                await PlainTextResponse(f"at most {SESSIONS} sessions", 429)(scope, receive, send)
            else:
                await self._app(scope, receive, send_and_count)
        finally:
            self._open.release(key)
