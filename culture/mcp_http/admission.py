"""Admission of HTTP requests: refuses foreign web pages and other users of this machine."""

import os
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from culture.config.listen_policy import is_loopback
from culture.config.peer_uid import IS_KNOWN, uid_of

ANY_NAME: frozenset[str] = frozenset()
"""Accepts any Host header, for networks with unknown names; web pages must then use localhost."""
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def own_names(*names: str) -> frozenset[str]:
    """Return the host names that requests may have in ``Host``: ``names`` and those of loopback.

    A request for another name is an attack by DNS rebinding.
    """
    return _LOOPBACK | {name.lower() for name in names}


class AdmissionCheck:
    """ASGI middleware that refuses requests by Host, Origin, or the Unix user of the client."""

    def __init__(
        self,
        app: ASGIApp,
        what: str,
        names: Collection[str],
        *,
        origin: str = "",
        strangers: str | None = None,
        refuse_all: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._app = app
        self._what = what
        self._names = names
        self._origin = origin.lower()
        """Origin of its own pages as others see it; a proxy may change the Host header."""
        self._strangers = strangers
        """Answer to other users of this machine; None if they may call."""
        self._refuse_all = refuse_all
        """Returns why all requests are refused, or None."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an HTTP request on to the application, or answer 401, 403 or 421 with the reason."""
        if scope["type"] == "http":
            refusal = self._check(scope)
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        name = _name(headers.get("host", ""))
        if self._names and name not in self._names:
            return PlainTextResponse(f"this is not the name of the {self._what}", 421)
        if not self._has_own_origin(headers) or _is_cross_site(headers):
            return PlainTextResponse(f"pages of others may not call the {self._what}", 403)
        if "origin" in headers and name not in (self._names or _LOOPBACK):
            return PlainTextResponse(f"no page calls the {self._what} by another name than localhost", 403)
        if self._strangers is not None and not is_own(scope.get("client"), scope.get("server")):
            return PlainTextResponse(self._strangers, 403)
        why = self._refuse_all()
        return None if why is None else PlainTextResponse(why, 401)

    def _has_own_origin(self, headers: Headers) -> bool:
        """Whether a request comes from a page of this server, or from no web page at all."""
        host, origin = headers.get("host", "").lower(), headers.get("origin", "").lower()
        return "origin" not in headers or origin in {f"http://{host}", f"https://{host}", self._origin or "-"}


def _is_cross_site(headers: Headers) -> bool:
    """Whether a browser sends a request on behalf of a page of another site.

    False for a link on another site that a person follows to a page of this server.
    """
    is_elsewhere = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    return is_elsewhere and headers.get("sec-fetch-mode") != "navigate"


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def is_own(client: tuple[str, int] | None, server: tuple[str, int | None] | None) -> bool:
    """Whether a TCP client is a process on this machine, run by the same user as we or by root.

    ``client``, ``server``: address and port of the two ends. Where the system does not tell the user, every loopback
    client counts.
    """
    if not client or not server or server[1] is None or not is_loopback(client[0]):
        return False
    return not IS_KNOWN or uid_of(client, (server[0], server[1])) in (os.getuid(), 0)
