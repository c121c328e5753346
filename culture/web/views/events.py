"""The stream of what happens, for a tab that is open."""

import time
from collections.abc import AsyncIterator

from starlette.responses import JSONResponse, Response, StreamingResponse

from culture.web.event_stream import Hub
from culture.web.page import PageRequest
from culture.web.view import WebView, shown

_EVERY = 2.0
_BEAT = 15.0
_LONGEST_ID = 60
MOST = 50
"""Tabs of one person: connections are few, and nobody has them all."""
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def _events(page: PageRequest) -> Response:
    seat = await page.seat()
    if seat.hub.listeners >= MOST:
        return page.refuse("You have this page open too often: close some tabs.", 429)
    last = page.request.headers.get("last-event-id", page.query.get("last", ""))[:_LONGEST_ID]
    first = f'retry: 2000\nevent: state\ndata: {{"condition": "{seat.condition.value}", "reason": ""}}\n\n'
    return StreamingResponse(_told(page, seat.hub, last, first), media_type="text/event-stream", headers=_HEADERS)


async def _told(page: PageRequest, hub: Hub, last: str, first: str) -> AsyncIterator[str]:
    """Until the tab is closed or the session ends; a comment now and then shows that the line is alive."""
    yield first
    looked = beat = time.monotonic()
    async for happening in hub.listen(last, _EVERY):
        now = time.monotonic()
        if now - looked >= _EVERY:
            looked = now
            if not page.web.sessions.holds(page.person.session):
                yield "event: ended\ndata: {}\n\n"
                return
        if happening is not None:
            yield str(happening)
        elif now - beat >= _BEAT:
            yield ": still here\n\n"
        else:
            continue
        beat = now


async def _whoami(page: PageRequest) -> Response:
    """For a tab whose stream ended: 401 where it has to log in again."""
    return JSONResponse({"account": page.person.account, "nick": page.person.nick})


VIEW = WebView(path="/events", routes=[shown("/events", _events), shown("/whoami", _whoami)])
