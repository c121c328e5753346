"""Middleware for all requests: checks Host, Origin, CSRF token and login; adds headers.

A request passes four checks, in this order: ``Host`` is a name of this page (against DNS rebinding), ``Origin`` and
``Sec-Fetch-Site`` are those of this page (against forms and requests of other sites), a POST has the CSRF token of the
cookie, and the person is logged in unless the path is in ``OPEN`` or below ``OPEN_BELOW``. What a check refuses never
reaches a handler. docs/web/security.md lists the attacks and what stands against each.
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from culture.config.listen_policy import is_loopback
from culture.config.peer_uid import IS_KNOWN, uid_of
from culture.lib.secret_compare import same_secret
from culture.web.page import WebPerson, csrf_of
from culture.web.sessions import BrowserSessions
from culture.web.site import WebSettings

log = logging.getLogger(__name__)

OPEN = frozenset({"/login", "/manifest.webmanifest", "/sw.js", "/favicon.ico"})
"""Paths that need no login."""
OPEN_BELOW = ("/login/", "/static/", "/vendor/")
LONGEST_BODY = 65536
_MOST_FIELDS = 50
_BODY_TIMEOUT = 20.0
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_ALL_INTERFACES = ("0.0.0.0", "::", "")
_FORM = "application/x-www-form-urlencoded"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}


@dataclass(frozen=True, slots=True)
class RequestRefused(Exception):
    """An HTTP request is refused, with this status and reason."""

    status: int
    reason: str


def cookie_name(settings: WebSettings) -> str:
    """Return the name of the web page's session cookie, which contains the page's port.

    Browsers share cookies between the ports of a host.
    """
    return f"{'__Host-' if settings.is_secure else ''}culture_{settings.port}"


def set_cookie(response: Response, settings: WebSettings, value: str, seconds: int | None) -> None:
    """Set the session cookie of a response to ``value``.

    ``seconds``: how long the browser keeps it; None: until the browser closes.
    """
    response.set_cookie(
        cookie_name(settings),
        value,
        max_age=seconds,
        path="/",
        secure=settings.is_secure,
        httponly=True,
        samesite="lax",
    )


class RequestGuard:
    """ASGI middleware that refuses forbidden requests, and adds security headers to answers."""

    def __init__(self, app: ASGIApp, settings: WebSettings, sessions: BrowserSessions) -> None:
        self._app = app
        self._settings = settings
        self._sessions = sessions
        self._names = _names(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application if it passes all checks, else send a refusal."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        request = _CheckedRequest(scope, self._settings, self._sessions)
        send = request.with_headers(send)
        try:
            request.check_host(self._names)
            request.check_origin()
            async with asyncio.timeout(_BODY_TIMEOUT):
                receive = await request.read(receive)
            request.check_form()
            request.check_login()
        except TimeoutError:
            await PlainTextResponse("the request took too long\n", 408)(scope, receive, send)
            return
        except RequestRefused as refused:
            if refused.status != 401:
                first = scope["path"].lstrip("/").partition("/")[0]  # the rest of the path may hold a secret
                log.info("refused: %s /%s: %s", scope["method"], first, refused.reason)
            await request.refusal(refused)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class _CheckedRequest:
    """One HTTP request while its Host, Origin, form and login are checked."""

    def __init__(self, scope: Scope, settings: WebSettings, sessions: BrowserSessions) -> None:
        self.scope = scope
        self.headers = Headers(scope=scope)
        self.settings = settings
        self._session_secret = _cookie(self.headers.getlist("cookie"), cookie_name(settings))
        caller_uid = _caller_uid(scope)
        session = sessions.find(self._session_secret, caller_uid) if self._session_secret else None
        self.person = WebPerson(session.account, settings.nick_of(session.account), session.id) if session else None
        self.cookie = self._session_secret or secrets.token_urlsafe(16)
        self.form: Mapping[str, str] = {}
        scope.setdefault("state", {})
        scope["state"] |= {"person": self.person, "cookie": self.cookie, "caller_uid": caller_uid, "form": self.form}

    @property
    def _is_write(self) -> bool:
        return self.scope["method"] not in ("GET", "HEAD")

    def check_host(self, names: frozenset[str]) -> None:
        """Raise ``RequestRefused`` if the header ``Host`` is not in ``names`` (DNS rebinding).

        Methods other than GET, HEAD and POST are refused, too.
        """
        hosts = self.headers.getlist("host")
        if len(hosts) != 1 or _host(hosts[0]) not in names:
            raise RequestRefused(421, "unknown host name: set web.url in culture.yaml to the name that people use")
        if self.scope["method"] not in ("GET", "HEAD", "POST"):
            raise RequestRefused(405, "method not allowed")

    def check_origin(self) -> None:
        """Raise ``RequestRefused`` for forms and subrequests that come from other sites.

        Following a link from another site is allowed.
        """
        site, mode = self.headers.get("sec-fetch-site"), self.headers.get("sec-fetch-mode")
        if self._is_write:
            scheme, _, place = self.headers.get("origin", "").lower().partition("://")
            schemes = ("https",) if self.settings.is_secure else ("http", "https")
            if scheme not in schemes or place != self.headers["host"].lower():
                raise RequestRefused(403, "the form was sent by another site")
        if site not in (None, "same-origin", "none") and (self._is_write or mode != "navigate"):
            raise RequestRefused(403, "the request was made by another site")

    async def read(self, receive: Receive) -> Receive:
        """Read the body of a form, up to 64 KiB, and store its fields in ``form``.

        Returns a ``receive`` from which the handler can read the body again. ``RequestRefused`` is raised if the body
        is too large or no form.
        """
        if not self._is_write:
            return receive
        length = self.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > LONGEST_BODY:
            raise RequestRefused(413, "the request is too large")
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise RequestRefused(400, "the request ended early")
            body += message.get("body", b"")
            if len(body) > LONGEST_BODY:
                raise RequestRefused(413, "the request is too large")
            if not message.get("more_body"):
                break
        if body and self.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            raise RequestRefused(415, "only forms are accepted")
        self.form = self._fields(body)
        self.scope["state"]["form"] = self.form
        return receive

    @staticmethod
    def _fields(body: bytes) -> dict[str, str]:
        try:
            return dict(parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS))
        except ValueError:
            raise RequestRefused(400, "malformed form") from None

    def check_form(self) -> None:
        """Raise ``RequestRefused`` if a form lacks the CSRF token of the session."""
        token = self.headers.get("x-csrf-token") or self.form.get("csrf", "")
        if self._is_write and not (self._session_secret and same_secret(token, csrf_of(self._session_secret))):
            raise RequestRefused(403, "this form has expired: reload the page")

    def check_login(self) -> None:
        """Raise ``RequestRefused`` if the path needs a login and nobody is logged in."""
        path: str = self.scope["path"]
        if self.person is None and path not in OPEN and not path.startswith(OPEN_BELOW):
            raise RequestRefused(401, "log in first")

    def refusal(self, refused: RequestRefused) -> Response:
        """Return the response to a refused request.

        A browser that is not logged in is redirected to the login page.
        """
        if refused.status != 401:
            return PlainTextResponse(f"{refused.reason}\n", refused.status)
        path, query = self.scope["raw_path"].decode("latin-1"), self.scope["query_string"].decode("latin-1")
        here = f"{path}?{query}" if query else path
        if "hx-request" in self.headers:
            return PlainTextResponse("log in first\n", 401, {"HX-Redirect": "/login"})
        if self._is_write or "text/html" not in self.headers.get("accept", ""):
            return PlainTextResponse("log in first\n", 401)
        return RedirectResponse("/login" + (f"?next={quote(here, safe='')}" if here != "/" else ""), 303)

    def with_headers(self, send: Send) -> Send:
        """Return an ASGI ``send`` that adds the security headers, and ``no-store`` unless it is set."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
                if self.settings.is_secure:
                    headers.setdefault("Strict-Transport-Security", "max-age=31536000")
            await send(message)

        return send_with_headers


def _caller_uid(scope: Scope) -> int | None:
    """Return the Unix user id of the client's process if it is on this machine; None if unknown.

    Sessions on loopback are bound to the uid: browsers send our cookie to every port of the host, and another user of
    the machine may listen on one of them.
    """
    client, server = scope.get("client"), scope.get("server")
    if not IS_KNOWN or not client or not server or not is_loopback(client[0]):
        return None
    return uid_of(tuple(client), tuple(server))


def _cookie(lines: list[str], name: str) -> str | None:
    try:
        morsel = SimpleCookie("; ".join(lines)).get(name)
    except CookieError:
        return None
    return morsel.value if morsel is not None and morsel.value else None


def _host(text: str) -> str:
    try:
        return (urlsplit(f"//{text}").hostname or "").lower()
    except ValueError:
        return ""


def _names(settings: WebSettings) -> frozenset[str]:
    """Return the allowed host names: that of ``web.url``, the bound address, and loopback."""
    public = urlsplit(settings.web.url or "").hostname
    bound = None if settings.web.host in _ALL_INTERFACES else settings.web.host.lower()
    return _LOOPBACK | {name for name in (public, bound) if name}
