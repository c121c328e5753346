"""Room for everybody: of connections and sessions, each token has its share."""

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from culture.bridge.access import digest

AT_ONCE = 64
"""Requests of one token that are not answered yet, streams among them."""
SESSIONS, SESSION_LIFETIME = 100, 1800.0
"""A session that nobody uses lasts so long, and so many of them are opened in that time."""
_SESSION = "mcp-session-id"
_REMEMBERED = 1024


class Shares:
    """Refuses what is more than a token's share, with 429."""

    def __init__(self, app: ASGIApp, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock = clock
        self._open: Counter[str] = Counter()
        self._sessions: OrderedDict[str, deque[float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        key = digest(headers.get("authorization", ""))
        has_session = _SESSION in headers

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start" and not has_session:
                self._note(key, Headers(raw=message["headers"]))
            await send(message)

        why = self._too_much(key, has_session)
        if why is not None:
            await PlainTextResponse(why, 429)(scope, receive, send)
            return
        self._open[key] += 1
        try:
            await self._app(scope, receive, noted)
        finally:
            self._open[key] -= 1
            self._open += Counter()  # forgets those that have none

    def _too_much(self, key: str, has_session: bool) -> str | None:
        if self._open[key] >= AT_ONCE:
            return f"at most {AT_ONCE} requests at once"
        before = self._clock() - SESSION_LIFETIME
        opened = self._sessions.get(key, deque())
        while opened and opened[0] < before:
            opened.popleft()
        return f"at most {SESSIONS} sessions" if len(opened) >= SESSIONS and not has_session else None

    def _note(self, key: str, headers: Headers) -> None:
        if _SESSION not in headers:
            return
        self._sessions.setdefault(key, deque()).append(self._clock())
        self._sessions.move_to_end(key)
        if len(self._sessions) > _REMEMBERED:
            self._sessions.popitem(last=False)
