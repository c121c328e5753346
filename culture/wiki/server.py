"""Serves a wiki: over HTTP for many programs, or over stdio for one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from culture.config.listen_policy import is_loopback
from culture.mcp_http import http
from culture.mcp_http import server as mcp_server
from culture.mcp_http.admission import ANY_NAME, AdmissionCheck, own_names
from culture.wiki.errors import WikiRefused
from culture.wiki.identity import CallerNick, caller_of
from culture.wiki.pages import PAGE_LIMIT, Pages
from culture.wiki.tools import build

DEFAULT_PORT = 8809
_LONGEST_REQUEST = 6 * PAGE_LIMIT + 64 * 1024
"""Limit of a request: a page of which JSON escapes every character."""


def application(pages: Pages, host: str, is_trusted: bool = False) -> ASGIApp:
    """Return the ASGI application that serves a wiki's MCP tools at /mcp and /sse.

    ``host``: the address that it listens on, which clients may name as Host. ``is_trusted``: whether the network is
    trusted, so that everybody in it may call the tools, not only the user who runs the wiki.
    """
    app = CallerNick(mcp_server.pages(build(pages, caller_of), _LONGEST_REQUEST, answers_at_once=True))
    if is_trusted:
        return AdmissionCheck(app, "wiki", ANY_NAME)
    return AdmissionCheck(app, "wiki", own_names(host), strangers="only the user who runs the wiki may call it")


@asynccontextmanager
async def serving(
    pages: Pages, host: str = "127.0.0.1", port: int = DEFAULT_PORT, *, is_trusted: bool = False
) -> AsyncIterator[int]:
    """Serve a wiki over HTTP during the block and yield the port; port 0 means any free port.

    ``is_trusted``: whether the network is trusted, so that everybody in it may call the tools. Without it,
    ``WikiRefused`` is raised for a host that other machines can reach.
    """
    if not is_loopback(host) and not is_trusted:
        raise WikiRefused(
            f"{host} can be reached from other machines, and a wiki asks nobody who they are: "
            "only trusted_network: true allows it"
        )
    with http.listening(host, port) as listener:
        async with http.serving(application(pages, host, is_trusted), listener):
            yield listener.getsockname()[1]


async def serve_stdio(pages: Pages, nick: str) -> None:
    """Serve a wiki to the parent process over stdio until stdin is closed.

    ``nick``: the author of all pages that it writes.
    """
    await mcp_server.serve_stdio(build(pages, lambda _: nick))
