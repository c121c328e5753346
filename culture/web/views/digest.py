"""What happened while somebody was away."""

from datetime import UTC, datetime, timedelta

from starlette.responses import Response

from culture.ledger_views.digest import digest
from culture.ledger_views.digest_query import facts_since, said_since
from culture.web.mesh_model import board_of
from culture.web.page import PageRequest
from culture.web.view import WebView, shown

_SPANS = {"1h": 1, "8h": 8, "24h": 24, "3d": 72, "7d": 168}
_USUAL = "8h"


async def _digest(page: PageRequest) -> Response:
    asked = page.query.get("since", "")
    wanted = asked if asked in _SPANS else _USUAL
    until = datetime.now(UTC)
    since = until - timedelta(hours=_SPANS[wanted])
    board, irc = board_of(page), await page.irc()
    await board.look()
    kept, said = await facts_since(irc, since), await said_since(irc, since, until)
    return page.show(
        "digest.html",
        digest=digest(kept, said, since, until, page.person.nick, board.here),
        spans=tuple(_SPANS),
        wanted=wanted,
        now=until,
    )


VIEW = WebView(path="/digest", title="Digest", order=35, icon="digest", routes=[shown("/digest", _digest)])
