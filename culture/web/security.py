"""Who is let through: the page's own names, the page's own forms, people who are logged in; nobody else."""

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
from culture.config.secret_compare import same_secret
from culture.web.page import WebPerson, csrf_of
from culture.web.sessions import BrowserSessions
from culture.web.site import WebSettings

log = logging.getLogger(__name__)

OPEN = frozenset({"/login", "/manifest.webmanifest", "/sw.js", "/favicon.ico"})
"""What is there for everybody."""
OPEN_BELOW = ("/login/", "/static/", "/vendor/")
LONGEST_BODY = 65536
_MOST_FIELDS = 50
_PATIENCE = 20.0
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_EVERYWHERE = ("0.0.0.0", "::", "")
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
class Barred(Exception):
    """Somebody is not let through."""

    status: int
    reason: str


def cookie_name(settings: WebSettings) -> str:
    """Pages on different ports of a machine share their cookies, so each has a name of its own."""
    return f"{'__Host-' if settings.is_secure else ''}culture_{settings.port}"


def set_cookie(response: Response, settings: WebSettings, value: str, seconds: int | None) -> None:
    """Have the browser keep it, away from scripts and other sites."""
    response.set_cookie(
        cookie_name(settings),
        value,
        max_age=seconds,
        path="/",
        secure=settings.is_secure,
        httponly=True,
        samesite="lax",
    )


class Gate:
    """Around the whole page."""

    def __init__(self, app: ASGIApp, settings: WebSettings, sessions: BrowserSessions) -> None:
        self._app = app
        self._settings = settings
        self._sessions = sessions
        self._names = _names(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or say why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        visit = _Visit(scope, self._settings, self._sessions)
        send = visit.guarded(send)
        try:
            visit.check_place(self._names)
            visit.check_origin()
            async with asyncio.timeout(_PATIENCE):
                receive = await visit.read(receive)
            visit.check_form()
            visit.check_login()
        except TimeoutError:
            await PlainTextResponse("the request took too long\n", 408)(scope, receive, send)
            return
        except Barred as barred:
            if barred.status != 401:
                first = scope["path"].lstrip("/").partition("/")[0]  # behind it there may be a secret
                log.info("refused: %s /%s: %s", scope["method"], first, barred.reason)
            await visit.refusal(barred)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class _Visit:
    """One request on its way in."""

    def __init__(self, scope: Scope, settings: WebSettings, sessions: BrowserSessions) -> None:
        self.scope = scope
        self.headers = Headers(scope=scope)
        self.settings = settings
        self._shown = _cookie(self.headers.getlist("cookie"), cookie_name(settings))
        caller = _caller(scope)
        session = sessions.of(self._shown, caller) if self._shown else None
        self.person = WebPerson(session.account, settings.nick_of(session.account), session.id) if session else None
        self.cookie = self._shown or secrets.token_urlsafe(16)
        self.form: Mapping[str, str] = {}
        scope.setdefault("state", {})
        scope["state"] |= {"person": self.person, "cookie": self.cookie, "caller": caller, "form": self.form}

    @property
    def _changes(self) -> bool:
        return self.scope["method"] not in ("GET", "HEAD")

    def check_place(self, names: frozenset[str]) -> None:
        """Names that are not ours lead here by a trick (DNS rebinding)."""
        hosts = self.headers.getlist("host")
        if len(hosts) != 1 or _host(hosts[0]) not in names:
            raise Barred(421, "this page is not known by that name: set web.url in culture.yaml")
        if self.scope["method"] not in ("GET", "HEAD", "POST"):
            raise Barred(405, "no such method")

    def check_origin(self) -> None:
        """Only pages of ours send forms, and only they load parts of it; links from elsewhere are fine."""
        site, mode = self.headers.get("sec-fetch-site"), self.headers.get("sec-fetch-mode")
        if self._changes:
            scheme, _, place = self.headers.get("origin", "").lower().partition("://")
            schemes = ("https",) if self.settings.is_secure else ("http", "https")
            if scheme not in schemes or place != self.headers["host"].lower():
                raise Barred(403, "this form was not sent by a page of ours")
        if site not in (None, "same-origin", "none") and (self._changes or mode != "navigate"):
            raise Barred(403, "another site asked for this")

    async def read(self, receive: Receive) -> Receive:
        """The whole body, if it is not too long, and a way to hear of the end of the connection."""
        if not self._changes:
            return receive
        length = self.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > LONGEST_BODY:
            raise Barred(413, "this is too long")
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise Barred(400, "the request ended early")
            body += message.get("body", b"")
            if len(body) > LONGEST_BODY:
                raise Barred(413, "this is too long")
            if not message.get("more_body"):
                break
        if body and self.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            raise Barred(415, "only forms are read here")
        self.form = self._fields(body)
        self.scope["state"]["form"] = self.form
        return receive

    @staticmethod
    def _fields(body: bytes) -> dict[str, str]:
        try:
            return dict(parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS))
        except ValueError:
            raise Barred(400, "this form cannot be read") from None

    def check_form(self) -> None:
        """A form shows the token that its page was given."""
        shown = self.headers.get("x-csrf-token") or self.form.get("csrf", "")
        if self._changes and not (self._shown and same_secret(shown, csrf_of(self._shown))):
            raise Barred(403, "this form is out of date: load the page again")

    def check_login(self) -> None:
        """Everything but the way in is for those who are logged in."""
        path: str = self.scope["path"]
        if self.person is None and path not in OPEN and not path.startswith(OPEN_BELOW):
            raise Barred(401, "log in first")

    def refusal(self, barred: Barred) -> Response:
        """What somebody gets who is not let through; a browser that only has to log in goes there."""
        if barred.status != 401:
            return PlainTextResponse(f"{barred.reason}\n", barred.status)
        path, query = self.scope["raw_path"].decode("latin-1"), self.scope["query_string"].decode("latin-1")
        here = f"{path}?{query}" if query else path
        if "hx-request" in self.headers:
            return PlainTextResponse("log in first\n", 401, {"HX-Redirect": "/login"})
        if self._changes or "text/html" not in self.headers.get("accept", ""):
            return PlainTextResponse("log in first\n", 401)
        return RedirectResponse("/login" + (f"?next={quote(here, safe='')}" if here != "/" else ""), 303)

    def guarded(self, send: Send) -> Send:
        """Every answer has the headers that browsers heed; what is no file is kept by nobody."""

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
                if self.settings.is_secure:
                    headers.setdefault("Strict-Transport-Security", "max-age=31536000")
            await send(message)

        return guarded_send


def _caller(scope: Scope) -> int | None:
    """Whose process asks, where it is one of this machine; None elsewhere, and where nobody can tell.

    Browsers send our cookies to every port of our host, where another user of the machine may listen for them.
    """
    client, server = scope.get("client"), scope.get("server")
    if not IS_KNOWN or not client or not server or not is_loopback(client[0]):
        return None
    return uid_of(tuple(client), tuple(server))


def _cookie(lines: list[str], name: str) -> str | None:
    try:
        found = SimpleCookie("; ".join(lines)).get(name)
    except CookieError:
        return None
    return found.value if found is not None and found.value else None


def _host(text: str) -> str:
    try:
        return (urlsplit(f"//{text}").hostname or "").lower()
    except ValueError:
        return ""


def _names(settings: WebSettings) -> frozenset[str]:
    """What this page may be called: the address people use, the one it listens on, and loopback."""
    public = urlsplit(settings.web.url or "").hostname
    bound = None if settings.web.host in _EVERYWHERE else settings.web.host.lower()
    return _LOOPBACK | {name for name in (public, bound) if name}
