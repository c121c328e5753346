"""The page *Today*: open questions, recent alerts, broken links, each agent in one line."""

from datetime import UTC, datetime, timedelta

from starlette.responses import Response

from culture.ledger_views.agents import AgentView
from culture.ledger_views.spend import by_agent, total
from culture.web.mesh_model import mesh_model
from culture.web.page import PageRequest
from culture.web.view import WebView, get

_RECENT = timedelta(hours=24)
_MOST_ALERTS = 5


async def _today(page: PageRequest) -> Response:
    model = mesh_model(page)
    await model.refresh()
    now = datetime.now(UTC)
    agents, questions = model.agents(), model.questions()
    waiting = [each for each in questions if each.is_open]
    alerts = [each for each in model.alerts() if now - each.at < _RECENT and each.gravity != "info"]
    return page.show(
        "today.html",
        now=now,
        agents=sorted(agents, key=urgency),
        waiting=waiting,
        alerts=alerts[:_MOST_ALERTS],
        further=len(alerts[_MOST_ALERTS:]),
        broken=[link for link in model.mesh().links if link.state == "down"],
        spent=total(by_agent(model.turns(), now - _RECENT).values()),
        working=sum(agent.state == "working" for agent in agents if agent.runs),
        running=sum(agent.runs for agent in agents),
        problem=page.web.ledger.problem,
    )


def urgency(agent: AgentView) -> tuple[int, str]:
    """Return the key by which agents are sorted on the page *Today*, the most urgent first.

    Agents that need a person come first, then the others by activity, stopped ones last.
    """
    if agent.needs_attention and agent.runs:
        return 0, agent.nick
    order = ("working", "paused", "idle")
    place = order.index(agent.state) + 1 if agent.state in order else len(order) + 1
    return (place if agent.runs else len(order) + 2), agent.nick


VIEW = WebView(path="/today", title="Today", order=5, icon="home", routes=[get("/today", _today)])
