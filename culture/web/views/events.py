"""``/events``: the stream of server-sent events for an open tab, and ``/whoami``."""

import time
from collections.abc import AsyncIterator

from starlette.responses import JSONResponse, Response, StreamingResponse

from culture.web.event_stream import EventStream
from culture.web.page import PageRequest
from culture.web.view import WebView, get

_SESSION_CHECK = 2.0
_KEEPALIVE = 15.0
_LONGEST_ID = 60
MAX_TABS = 50
"""Open tabs per person, so that nobody uses up the connections of the page."""
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def _events(page: PageRequest) -> Response:
    connection = await page.connection()
    if connection.events.listeners >= MAX_TABS:
        return page.refuse("Too many open tabs. Close some of them.", 429)
    last = page.request.headers.get("last-event-id", page.query.get("last", ""))[:_LONGEST_ID]
    first = f'retry: 2000\nevent: state\ndata: {{"condition": "{connection.state.value}", "reason": ""}}\n\n'
    return StreamingResponse(
        _stream(page, connection.events, last, first), media_type="text/event-stream", headers=_HEADERS
    )


async def _stream(page: PageRequest, events: EventStream, last: str, first: str) -> AsyncIterator[str]:
    """Yield server-sent events for a tab until it closes or the browser session ends.

    ``first`` is sent at once; after 15 s without an event a comment is sent as keepalive. ``last``: id of the event
    after which to begin.
    """
    yield first
    checked_at = sent_at = time.monotonic()
    async for event in events.listen(last, _SESSION_CHECK):
        now = time.monotonic()
        if now - checked_at >= _SESSION_CHECK:
            checked_at = now
            if not page.web.sessions.is_active(page.person.session):
                yield "event: ended\ndata: {}\n\n"
                return
        if event is not None:
            yield str(event)
        elif now - sent_at >= _KEEPALIVE:
            yield ": keepalive\n\n"
        else:
            continue
        sent_at = now


async def _whoami(page: PageRequest) -> Response:
    """Return account and nick as JSON, for a tab whose event stream ended.

    If nobody is logged in, the status 401 tells the tab to log in again.
    """
    return JSONResponse({"account": page.person.account, "nick": page.person.nick})


VIEW = WebView(path="/events", routes=[get("/events", _events), get("/whoami", _whoami)])
