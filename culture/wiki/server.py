"""A wiki in operation: over HTTP for many programs, or over standard input and output for one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from culture.config.listen_policy import is_loopback
from culture.mcp_http import http
from culture.mcp_http import server as door
from culture.mcp_http.admission import ANY_NAME, Door, called
from culture.wiki.errors import WikiRefused
from culture.wiki.identity import Named, caller_of
from culture.wiki.pages import PAGE_LIMIT, Pages
from culture.wiki.tools import build

DEFAULT_PORT = 8809
_LONGEST_REQUEST = 6 * PAGE_LIMIT + 64 * 1024
"""A page of which JSON has to escape every letter."""


def application(pages: Pages, host: str, is_trusted: bool = False) -> ASGIApp:
    """The addresses of a wiki: /mcp, and /sse for older clients. In a trusted network whoever reaches it may call."""
    app = Named(door.pages(build(pages, caller_of), _LONGEST_REQUEST, answers_at_once=True))
    if is_trusted:
        return Door(app, "wiki", ANY_NAME)
    return Door(app, "wiki", called(host), strangers="only the user who runs the wiki may call it")


@asynccontextmanager
async def serving(
    pages: Pages, host: str = "127.0.0.1", port: int = DEFAULT_PORT, *, is_trusted: bool = False
) -> AsyncIterator[int]:
    """The port of a wiki that is served; Refused beyond loopback, unless the network is trusted."""
    if not is_loopback(host) and not is_trusted:
        raise WikiRefused(
            f"{host} can be reached from other machines, and a wiki asks nobody who they are: "
            "only trusted_network: true allows it"
        )
    with http.listening(host, port) as listener:
        async with http.serving(application(pages, host, is_trusted), listener):
            yield listener.getsockname()[1]


async def serve_stdio(pages: Pages, nick: str) -> None:
    """Serve whoever started us, until they close our input or are gone."""
    await door.serve_stdio(build(pages, lambda _: nick))
