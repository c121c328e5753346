"""Views: each module in ``web/views`` declares its routes and its navigation entry."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from culture.transport import NotSent
from culture.web import views
from culture.web.page import PageRequest

Handler = Callable[[PageRequest], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class WebView:
    """One page of the web page, or several that belong together: routes and navigation entry.

    ``order``: position in the navigation. ``icon``: name of an SVG symbol.
    """

    path: str
    routes: Sequence[Route]
    title: str = ""
    """Name in the navigation; empty: not in the navigation."""
    order: int = 50
    icon: str = ""
    badge: Callable[[PageRequest], int] | None = None
    """Returns the number beside the name in the navigation; 0 shows none."""


def get(path: str, handler: Handler) -> Route:
    """Return a GET route at ``path`` that calls ``handler``.

    If htmx requests only the navigation, it is rendered without calling the handler.
    """

    async def page_or_navigation(page: PageRequest) -> Response:
        return page.show("base.html") if page.is_only("nav") else await handler(page)

    return Route(path, _endpoint(page_or_navigation), methods=["GET"])


def post(path: str, handler: Handler) -> Route:
    """Return a POST route at ``path`` that calls ``handler`` with the submitted form."""
    return Route(path, _endpoint(handler), methods=["POST"])


def _endpoint(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        page = PageRequest(request)
        try:
            return await handler(page)
        except NotSent as refused:
            return page.refuse(refused.reason)

    return endpoint


@cache
def all_views() -> tuple[WebView, ...]:
    """Return the ``VIEW`` of every module in ``culture/web/views``, in navigation order."""
    modules = (import_module(f"{views.__name__}.{each.name}") for each in iter_modules(views.__path__))
    return tuple(sorted((module.VIEW for module in modules), key=lambda view: (view.order, view.path)))
