"""A page in operation."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from culture.door import http
from culture.web.app import create
from culture.web.ledger import OnProblem
from culture.web.push import Post
from culture.web.site import Settings


@asynccontextmanager
async def serving(
    settings: Settings, post: Post | None = None, on_problem: OnProblem | None = None
) -> AsyncIterator[Settings]:
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
