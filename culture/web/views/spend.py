"""The page *Spend*: cost and tokens of agents per day, as a chart and a table."""

from starlette.responses import Response

from culture.ledger_views.spend import by_agent, by_day, midnight, total
from culture.web.mesh_model import mesh_model
from culture.web.page import PageRequest
from culture.web.spend_chart import draw_chart
from culture.web.view import WebView, get

_SPANS = {"7": 7, "14": 14, "30": 30}


async def _spend(page: PageRequest) -> Response:
    model, today = mesh_model(page), midnight()
    requested = page.query.get("days", "")
    length, in_tokens = _SPANS.get(requested, 14), page.query.get("in") == "tokens"
    turns = model.turns()
    parts, parts_today = by_agent(turns, midnight(length - 1)), by_agent(turns, today)
    chart = draw_chart(by_day(turns), today.date(), length, in_tokens)
    return page.show(
        "spend.html",
        chart=chart,
        colours=dict(chart.key),
        parts=parts,
        total=total(parts.values()),
        today=parts_today,
        today_total=total(parts_today.values()),
        zone=today.tzname(),
        limits={agent.nick: agent for agent in model.agents()},
        length=length,
        spans=tuple(_SPANS.values()),
        in_tokens=in_tokens,
        problem=page.web.ledger.problem,
    )


VIEW = WebView(path="/spend", title="Spend", order=60, icon="spend", routes=[get("/spend", _spend)])
