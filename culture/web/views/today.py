"""One look a day: what needs somebody now, and all agents at a glance."""

from datetime import UTC, datetime, timedelta

from starlette.responses import Response

from culture.ledger_views.agents import AgentView
from culture.ledger_views.spend import by_agent, total
from culture.web.mesh_model import board_of
from culture.web.page import PageRequest
from culture.web.view import WebView, shown

_LATELY = timedelta(hours=24)
_MOST_ALERTS = 5


async def _today(page: PageRequest) -> Response:
    board = board_of(page)
    await board.look()
    now = datetime.now(UTC)
    known, asked = board.agents(), board.questions()
    waiting = [each for each in asked if each.is_open]
    calls = [each for each in board.alerts() if now - each.at < _LATELY and each.gravity != "info"]
    return page.show(
        "today.html",
        now=now,
        agents=sorted(known, key=urgency),
        waiting=waiting,
        alerts=calls[:_MOST_ALERTS],
        further=len(calls[_MOST_ALERTS:]),
        broken=[link for link in board.mesh().links if link.state == "down"],
        spent=total(by_agent(board.turns(), now - _LATELY).values()),
        working=sum(agent.state == "working" for agent in known if agent.runs),
        running=sum(agent.runs for agent in known),
        problem=page.web.ledger.problem,
    )


def urgency(agent: AgentView) -> tuple[int, str]:
    """Whoever needs somebody comes first, and whoever does nothing last."""
    if agent.needs_somebody and agent.runs:
        return 0, agent.nick
    order = ("working", "paused", "idle")
    place = order.index(agent.state) + 1 if agent.state in order else len(order) + 1
    return (place if agent.runs else len(order) + 2), agent.nick


VIEW = WebView(path="/today", title="Today", order=5, icon="home", routes=[shown("/today", _today)])
