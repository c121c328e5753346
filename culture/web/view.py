"""What a page of the site is: a place in the navigation, and routes."""

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
    """A page, or several that belong together."""

    path: str
    routes: Sequence[Route]
    title: str = ""
    """Its name in the navigation; without one it is not in it."""
    order: int = 50
    icon: str = ""
    badge: Callable[[PageRequest], int] | None = None
    """The number that is shown beside its name, where it is not 0."""


def shown(path: str, handler: Handler) -> Route:
    """A page to look at."""

    async def or_navigation(page: PageRequest) -> Response:
        """Where the navigation alone is asked for, nothing else is looked up."""
        return page.show("base.html") if page.is_only("nav") else await handler(page)

    return Route(path, _endpoint(or_navigation), methods=["GET"])


def done(path: str, handler: Handler) -> Route:
    """Something to do, sent by a form."""
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
def found() -> tuple[WebView, ...]:
    """Every view there is, in the order of the navigation."""
    modules = (import_module(f"{views.__name__}.{each.name}") for each in iter_modules(views.__path__))
    return tuple(sorted((module.VIEW for module in modules), key=lambda view: (view.order, view.path)))
