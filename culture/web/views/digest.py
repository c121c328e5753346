"""The page *Digest*: what happened in the last hour, 8 hours, day, 3 days or week."""

from datetime import UTC, datetime, timedelta

from starlette.responses import Response

from culture.ledger_views.digest import digest
from culture.ledger_views.digest_query import facts_since, messages_since
from culture.web.mesh_model import mesh_model
from culture.web.page import PageRequest
from culture.web.view import WebView, get

_SPANS = {"1h": 1, "8h": 8, "24h": 24, "3d": 72, "7d": 168}
_DEFAULT = "8h"


async def _digest(page: PageRequest) -> Response:
    requested = page.query.get("since", "")
    selected = requested if requested in _SPANS else _DEFAULT
    until = datetime.now(UTC)
    since = until - timedelta(hours=_SPANS[selected])
    model, irc = mesh_model(page), await page.irc()
    await model.refresh()
    facts, messages = await facts_since(irc, since), await messages_since(irc, since, until)
    return page.show(
        "digest.html",
        digest=digest(facts, messages, since, until, page.person.nick, model.online),
        spans=tuple(_SPANS),
        selected=selected,
        now=until,
    )


VIEW = WebView(path="/digest", title="Digest", order=35, icon="digest", routes=[get("/digest", _digest)])
