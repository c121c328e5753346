"""What agents spend, over time."""

from starlette.responses import Response

from culture.ledger_views.spend import by_agent, by_day, midnight, total
from culture.web.mesh_model import board_of
from culture.web.page import PageRequest
from culture.web.spend_chart import chart
from culture.web.view import WebView, shown

_SPANS = {"7": 7, "14": 14, "30": 30}


async def _spend(page: PageRequest) -> Response:
    board, today = board_of(page), midnight()
    wanted = page.query.get("days", "")
    length, in_tokens = _SPANS.get(wanted, 14), page.query.get("in") == "tokens"
    taken = board.turns()
    parts, lately = by_agent(taken, midnight(length - 1)), by_agent(taken, today)
    drawn = chart(by_day(taken), today.date(), length, in_tokens)
    return page.show(
        "spend.html",
        chart=drawn,
        colours=dict(drawn.key),
        parts=parts,
        total=total(parts.values()),
        today=lately,
        today_total=total(lately.values()),
        zone=today.tzname(),
        limits={agent.nick: agent for agent in board.agents()},
        length=length,
        spans=tuple(_SPANS.values()),
        in_tokens=in_tokens,
        problem=page.web.ledger.problem,
    )


VIEW = WebView(path="/spend", title="Spend", order=60, icon="spend", routes=[shown("/spend", _spend)])
