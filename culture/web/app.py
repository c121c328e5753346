"""Build the web page from its parts, and serve it."""

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
from culture.web.login_links import LoginLinks
from culture.web.page import PageRequest, WebPerson
from culture.web.push import Post, Pusher
from culture.web.security import RequestGuard
from culture.web.sessions import BrowserSessions
from culture.web.site import Site, WebSettings
from culture.web.static_files import file_routes
from culture.web.throttle import LoginThrottle
from culture.web.view import WebView, all_views


def create(
    settings: WebSettings,
    views: Sequence[WebView] | None = None,
    post: Post | None = None,
    on_problem: OnProblem | None = None,
) -> Starlette:
    """Return the ASGI application of the web page; its IRC connections last until it shuts down.

    ``views``: the pages to serve, None for all. ``post`` sends push notifications; without it there are none.
    ``on_problem`` is called with the reason why the page is not connected to its IRC server, and with "" once it is.
    """
    database = WebDatabase(settings.folder)
    sessions = BrowserSessions(database, settings.web.session_days, login_version=settings.login_version)

    token = settings.token

    def identity_of(person: WebPerson) -> ClientIdentity:
        return ClientIdentity(person.nick, settings.account, token, bot=False, on_behalf=person.account)

    own = ClientIdentity(settings.nick_of(settings.account), settings.account, token, realname="the web page")

    def own_identity() -> ClientIdentity:
        nonlocal token
        token = (settings.renewed_token() if settings.renewed_token is not None else None) or token
        return replace(own, secret=token)

    ledger = LedgerClient(settings.address, own, on_problem=on_problem, current_identity=own_identity)

    def on_refused(account: str) -> None:
        """Log out an account that the server refuses, unless it refuses the page's own account too."""
        if not ledger.is_refused:
            sessions.revoke_of(account)

    connections = WebConnectionPool(settings.address, identity_of, settings.server.channels[0], on_refused=on_refused)

    def on_change(kinds: frozenset[str]) -> None:
        for connection in connections.open:
            connection.events.publish("facts", {"kinds": sorted(kinds)})

    ledger.on_change = on_change
    site = Site(settings, sessions, LoginLinks(database), connections, ledger, LoginThrottle())
    pusher = Pusher(settings.web.push, settings.url, connections, settings.nick_of, post) if post is not None else None
    web_views = tuple(all_views() if views is None else views)
    routes: list[Route] = [route for view in web_views for route in view.routes]

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        await site.ledger.start()
        site.connections.start()
        if pusher is not None:
            pusher.start()
        try:
            yield
        finally:
            if pusher is not None:
                await pusher.stop()
            await site.ledger.stop()
            await site.connections.close()
            database.close()

    app = Starlette(
        routes=[*routes, *file_routes()],
        middleware=[Middleware(RequestGuard, settings=settings, sessions=sessions)],
        exception_handlers={404: _not_found, 500: _failed},
        lifespan=lifespan,
    )
    app.state.site = site
    app.state.views = web_views
    return app


async def _not_found(request: Request, _error: Exception) -> Response:
    return PageRequest(request).refuse("Page not found.", 404)


async def _failed(request: Request, _error: Exception) -> Response:
    return PageRequest(request).refuse("Internal error. The page's log has the details.", 500)


@asynccontextmanager
async def serving(
    settings: WebSettings, post: Post | None = None, on_problem: OnProblem | None = None
) -> AsyncIterator[WebSettings]:
    """Serve the web page during the block; yield its settings with the actual port.

    Port 0 in the settings means any free port. ``post`` sends push notifications; without it there are none.
    ``on_problem`` is called with the reason why the page is not connected to its IRC server, and with "" once it is.
    """
    tls = settings.web.tls
    with http.listening(settings.web.host, settings.port) as listener:
        settings = replace(settings, port=listener.getsockname()[1])
        app = create(settings, post=post, on_problem=on_problem)
        async with http.serving(app, listener, tls.certificate if tls else None, tls.key if tls else None):
            try:
                yield settings
            finally:
                app.state.site.connections.end_streams()
