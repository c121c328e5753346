"""The pages *Agents* and of one agent: state, usage, last tasks, buttons for control words."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from starlette.responses import Response

from culture.ledger_views.agents import AgentView
from culture.ledger_views.spend import by_day, midnight
from culture.protocol.names import fold
from culture.protocol.vocabulary import ControlWord
from culture.web.agent_command import send_to_agent
from culture.web.mesh_model import mesh_model
from culture.web.page import PageRequest
from culture.web.spend_chart import draw_chart
from culture.web.view import WebView, get, post
from culture.web.views.today import urgency

_CONTROL_WORDS = (
    ControlWord.PAUSE,
    ControlWord.RESUME,
    ControlWord.ABORT,
    ControlWord.STAND_DOWN,
    ControlWord.GO_ON,
    ControlWord.COMPACT,
)
_TURNS, _QUESTIONS, _DAYS = 12, 8, 14


async def _agents(page: PageRequest) -> Response:
    model = mesh_model(page)
    await model.refresh()
    agents = sorted(model.agents(), key=urgency)
    selected = page.query.get("state", "")
    return page.show(
        "agents.html",
        agents=[agent for agent in agents if not selected or _display_state(agent) == selected],
        states=Counter(map(_display_state, agents)),
        selected=selected,
        total=len(agents),
        last_messages={agent.nick: model.last_message(agent.nick) for agent in agents},
        problem=page.web.ledger.problem,
    )


async def _agent(page: PageRequest) -> Response:
    model = mesh_model(page)
    await model.refresh()
    agent = _find(model.agents(), page.path_params["nick"])
    if agent is None:
        return page.refuse(f"There is no agent called {page.path_params['nick']}.", 404)
    name = fold(agent.nick)
    turns = [turn for turn in model.turns() if fold(turn.nick) == name]
    return page.show(
        "agent.html",
        agent=agent,
        last_messages={agent.nick: model.last_message(agent.nick)},
        turns=model.turn_purposes(agent.nick)[:_TURNS],
        questions=[each for each in model.questions() if fold(each.nick) == name][:_QUESTIONS],
        alerts=[each for each in model.alerts() if fold(each.nick) == name][:_QUESTIONS],
        chart=draw_chart(by_day(turns), midnight().date(), _DAYS),
        now=datetime.now(UTC),
        has_cost=any(turn.cost_usd for turn in turns if datetime.now(UTC) - turn.at < timedelta(days=_DAYS)),
        problem=page.web.ledger.problem,
    )


async def _say(page: PageRequest) -> Response:
    nick, word, sender = page.path_params["nick"], page.form.get("word", ""), page.form.get("sender", "")
    agent = _find(mesh_model(page).agents(), nick)
    is_known = agent is not None and (not sender or sender in (each.nick for each in agent.held_by))
    if word not in _CONTROL_WORDS or not is_known or (sender and word != ControlWord.GO_ON):
        return page.refuse(f"{word!r} is no command for {nick}.", 400)
    result = await send_to_agent(await page.connection(), nick, f"@{nick} {word} {sender}".rstrip())
    return page.show(
        "command_result.html",
        is_part=page.is_part,
        result=result,
        is_done=bool(result.text),
        back=f"/agents/{quote(nick, safe='')}",
    )


def _find(agents: list[AgentView], nick: str) -> AgentView | None:
    return next((agent for agent in agents if fold(agent.nick) == fold(nick)), None)


def _display_state(agent: AgentView) -> str:
    return agent.display_state if agent.runs else "stopped"


VIEW = WebView(
    path="/agents",
    title="Agents",
    order=20,
    icon="agents",
    routes=[get("/agents", _agents), get("/agents/{nick}", _agent), post("/agents/{nick}/say", _say)],
)
