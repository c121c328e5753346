"""Who is let through at all: not a web page elsewhere, not another user of this machine."""

import os
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from culture.config.listen_policy import is_loopback
from culture.config.peer_uid import IS_KNOWN, uid_of

ANY_NAME: frozenset[str] = frozenset()
"""For a network in which nobody knows how it is called; then pages have to say localhost."""
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def called(*names: str) -> frozenset[str]:
    """These names and those of loopback: any other leads here by a trick (DNS rebinding)."""
    return _LOOPBACK | {name.lower() for name in names}


class Door:
    """Checks Host and Origin, whose process calls where that counts, and then whatever else may bar the way."""

    def __init__(
        self,
        app: ASGIApp,
        what: str,
        names: Collection[str],
        *,
        origin: str = "",
        strangers: str | None = None,
        barred: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._app = app
        self._what = what
        self._names = names
        self._origin = origin.lower()
        """What its own pages are called by others; a proxy may have changed Host on the way."""
        self._strangers = strangers
        """What is told to whoever is not the user who runs it; None where they may call."""
        self._barred = barred
        """Why nobody may call without a login after all, or None."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer it here."""
        if scope["type"] == "http":
            refused = self._refused(scope)
            if refused is not None:
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refused(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        name = _name(headers.get("host", ""))
        if self._names and name not in self._names:
            return PlainTextResponse(f"this is not the name of the {self._what}", 421)
        if not self._is_of_its_origin(headers) or _is_of_a_page(headers):
            return PlainTextResponse(f"pages of others may not call the {self._what}", 403)
        if "origin" in headers and name not in (self._names or _LOOPBACK):
            return PlainTextResponse(f"no page calls the {self._what} by another name than localhost", 403)
        if self._strangers is not None and not is_own(scope.get("client"), scope.get("server")):
            return PlainTextResponse(self._strangers, 403)
        why = self._barred()
        return None if why is None else PlainTextResponse(why, 401)

    def _is_of_its_origin(self, headers: Headers) -> bool:
        """Whether no page calls, or one from here."""
        host, origin = headers.get("host", "").lower(), headers.get("origin", "").lower()
        return "origin" not in headers or origin in {f"http://{host}", f"https://{host}", self._origin or "-"}


def _is_of_a_page(headers: Headers) -> bool:
    """Whether a browser calls for a page elsewhere; that somebody follows a link to here is another matter."""
    is_elsewhere = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    return is_elsewhere and headers.get("sec-fetch-mode") != "navigate"


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def is_own(client: tuple[str, int] | None, server: tuple[str, int | None] | None) -> bool:
    """Is the other end of a connection a process of the user who runs this, or of root?"""
    if not client or not server or server[1] is None or not is_loopback(client[0]):
        return False
    return not IS_KNOWN or uid_of(client, (server[0], server[1])) in (os.getuid(), 0)
