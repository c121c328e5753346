"""A page in operation."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from culture.mcp_http import http
from culture.transport import ClientIdentity
from culture.web.connection_pool import WebConnectionPool
from culture.web.database import WebDatabase
from culture.web.ledger_client import LedgerClient, OnProblem
from culture.web.login_links import Links
from culture.web.page import PageRequest, WebPerson
from culture.web.push import Post, Pusher
from culture.web.security import Gate
from culture.web.sessions import BrowserSessions
from culture.web.site import Site, WebSettings
from culture.web.static_files import files
from culture.web.throttle import LoginThrottle
from culture.web.view import WebView, found


def create(
    settings: WebSettings,
    views: Sequence[WebView] | None = None,
    post: Post | None = None,
    on_problem: OnProblem | None = None,
) -> Starlette:
    """The page for a server; its connections are opened when it begins to serve, and closed when it ends.

    ``post`` is how phones are woken; without it none is. ``on_problem`` is told why the page is not connected.
    """
    database = WebDatabase(settings.folder)
    sessions = BrowserSessions(database, settings.web.session_days, standing=settings.standing)

    token = settings.token

    def identity_of(person: WebPerson) -> ClientIdentity:
        return ClientIdentity(person.nick, settings.account, token, bot=False, on_behalf=person.account)

    own = ClientIdentity(settings.nick_of(settings.account), settings.account, token, realname="the web page")

    def own_now() -> ClientIdentity:
        nonlocal token
        token = (settings.renewed_token() if settings.renewed_token is not None else None) or token
        return replace(own, secret=token)

    ledger = LedgerClient(settings.address, own, on_problem=on_problem, identity_now=own_now)

    def refused(account: str) -> None:
        """Whom the server does not let in is logged out; where the page itself is not let in, nobody is to blame."""
        if not ledger.is_refused:
            sessions.revoke_of(account)

    seats = WebConnectionPool(settings.address, identity_of, settings.server.channels[0], on_refused=refused)

    def changed(kinds: frozenset[str]) -> None:
        for seat in seats.open:
            seat.hub.tell("facts", {"kinds": sorted(kinds)})

    ledger.on_change = changed
    site = Site(settings, sessions, Links(database), seats, ledger, LoginThrottle())
    pusher = Pusher(settings.web.push, settings.url, seats, settings.nick_of, post) if post is not None else None
    shown = tuple(found() if views is None else views)
    routes: list[Route] = [route for view in shown for route in view.routes]

    @asynccontextmanager
    async def running(_app: Starlette) -> AsyncIterator[None]:
        await site.ledger.start()
        site.seats.start()
        if pusher is not None:
            pusher.start()
        try:
            yield
        finally:
            if pusher is not None:
                await pusher.stop()
            await site.ledger.stop()
            await site.seats.close()
            database.close()

    app = Starlette(
        routes=[*routes, *files()],
        middleware=[Middleware(Gate, settings=settings, sessions=sessions)],
        exception_handlers={404: _not_found, 500: _failed},
        lifespan=running,
    )
    app.state.site = site
    app.state.views = shown
    return app


async def _not_found(request: Request, _error: Exception) -> Response:
    return PageRequest(request).refuse("There is no such page.", 404)


async def _failed(request: Request, _error: Exception) -> Response:
    return PageRequest(request).refuse("Something went wrong here; the log of the page says what.", 500)


@asynccontextmanager
async def serving(
    settings: WebSettings, post: Post | None = None, on_problem: OnProblem | None = None
) -> AsyncIterator[WebSettings]:
    """The settings of a page that runs, with the port it has; port 0 takes a free one.

    ``on_problem`` is told why the page is not connected to its server, and nothing once it is.
    """
    tls = settings.web.tls
    with http.listening(settings.web.host, settings.port) as listener:
        settings = replace(settings, port=listener.getsockname()[1])
        app = create(settings, post=post, on_problem=on_problem)
        async with http.serving(app, listener, tls.certificate if tls else None, tls.key if tls else None):
            try:
                yield settings
            finally:
                app.state.site.seats.end_streams()
