"""The questions of agents: those that wait, with a way to answer, and those that are closed."""

import re
from datetime import UTC, datetime
from urllib.parse import quote

from starlette.responses import Response

from culture.ledger_views.questions import find
from culture.web.agent_command import tell
from culture.web.mesh_model import board_of
from culture.web.page import PageRequest
from culture.web.view import WebView, done, shown

_CLOSED = 30
_LONGEST = 2_000
_ID = re.compile(r"[qQ]\d{1,9}")


async def _questions(page: PageRequest) -> Response:
    found = board_of(page).questions()
    return page.show(
        "questions.html",
        waiting=[each for each in found if each.is_open],
        closed=[each for each in found if not each.is_open][:_CLOSED],
        now=datetime.now(UTC),
        problem=page.web.ledger.problem,
    )


async def _question(page: PageRequest) -> Response:
    nick, id = page.words["nick"], page.words["id"]
    question = find(board_of(page).questions(), nick, id)
    if question is None:
        return page.refuse(f"{nick} has asked no question {id} that is still known.", 404)
    return page.show("question.html", question=question, now=datetime.now(UTC), problem=page.web.ledger.problem)


async def _answer(page: PageRequest) -> Response:
    nick, id = page.words["nick"], page.words["id"]
    text = " ".join(page.form.get("answer", "").split())[:_LONGEST]
    if not _ID.fullmatch(id) or find(board_of(page).questions(), nick, id) is None:
        return page.refuse(f"{nick} has asked no question {id} that is still known.", 404)
    if not text:
        return page.refuse("There is nothing to say.", 400)
    told = await tell(await page.seat(), nick, f"{id.lower()} {text}")
    return page.show(
        "told.html",
        is_part=page.is_part,
        told=told,
        is_done=told.counts,
        back=f"/questions/{quote(nick, safe='')}/{id}",
    )


def _waiting(page: PageRequest) -> int:
    return sum(each.is_open for each in board_of(page).questions())


VIEW = WebView(
    path="/questions",
    title="Questions",
    order=30,
    icon="questions",
    badge=_waiting,
    routes=[
        shown("/questions", _questions),
        shown("/questions/{nick}/{id}", _question),
        done("/questions/{nick}/{id}", _answer),
    ],
)
