"""The agents: what they do and what they use, and a word to each of them."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from starlette.responses import Response

from culture.ledger_views.agents import AgentView
from culture.ledger_views.spend import by_day, midnight
from culture.protocol.names import fold
from culture.protocol.vocabulary import ControlWord
from culture.web.agent_command import tell
from culture.web.mesh_model import board_of
from culture.web.page import PageRequest
from culture.web.spend_chart import chart
from culture.web.view import WebView, done, shown
from culture.web.views.today import urgency

_WORDS = (
    ControlWord.PAUSE,
    ControlWord.RESUME,
    ControlWord.ABORT,
    ControlWord.STAND_DOWN,
    ControlWord.GO_ON,
    ControlWord.COMPACT,
)
_ERRANDS, _QUESTIONS, _DAYS = 12, 8, 14


async def _agents(page: PageRequest) -> Response:
    board = board_of(page)
    await board.look()
    found = sorted(board.agents(), key=urgency)
    wanted = page.query.get("state", "")
    return page.show(
        "agents.html",
        agents=[agent for agent in found if not wanted or _shown_state(agent) == wanted],
        states=Counter(map(_shown_state, found)),
        wanted=wanted,
        everybody=len(found),
        words={agent.nick: board.last_words(agent.nick) for agent in found},
        problem=page.web.ledger.problem,
    )


async def _agent(page: PageRequest) -> Response:
    board = board_of(page)
    await board.look()
    agent = _find(board.agents(), page.words["nick"])
    if agent is None:
        return page.refuse(f"No agent called {page.words['nick']} has said what it does.", 404)
    name = fold(agent.nick)
    taken = [turn for turn in board.turns() if fold(turn.nick) == name]
    return page.show(
        "agent.html",
        agent=agent,
        words={agent.nick: board.last_words(agent.nick)},
        errands=board.errands(agent.nick)[:_ERRANDS],
        questions=[each for each in board.questions() if fold(each.nick) == name][:_QUESTIONS],
        alerts=[each for each in board.alerts() if fold(each.nick) == name][:_QUESTIONS],
        chart=chart(by_day(taken), midnight().date(), _DAYS),
        now=datetime.now(UTC),
        spent=any(turn.cost_usd for turn in taken if datetime.now(UTC) - turn.at < timedelta(days=_DAYS)),
        problem=page.web.ledger.problem,
    )


async def _say(page: PageRequest) -> Response:
    nick, word, sender = page.words["nick"], page.form.get("word", ""), page.form.get("sender", "")
    agent = _find(board_of(page).agents(), nick)
    is_known = agent is not None and (not sender or sender in (each.nick for each in agent.held_by))
    if word not in _WORDS or not is_known or (sender and word != ControlWord.GO_ON):
        return page.refuse(f"{word!r} is nothing that {nick} could be told.", 400)
    told = await tell(await page.seat(), nick, f"@{nick} {word} {sender}".rstrip())
    return page.show(
        "told.html", is_part=page.is_part, told=told, is_done=bool(told.text), back=f"/agents/{quote(nick, safe='')}"
    )


def _find(agents: list[AgentView], nick: str) -> AgentView | None:
    return next((agent for agent in agents if fold(agent.nick) == fold(nick)), None)


def _shown_state(agent: AgentView) -> str:
    return agent.shown_state if agent.runs else "stopped"


VIEW = WebView(
    path="/agents",
    title="Agents",
    order=20,
    icon="agents",
    routes=[shown("/agents", _agents), shown("/agents/{nick}", _agent), done("/agents/{nick}/say", _say)],
)
