"""The pages *Questions* and of one question: open ones with a form, then closed ones."""

import re
from datetime import UTC, datetime
from urllib.parse import quote

from starlette.responses import Response

from culture.ledger_views.questions import find
from culture.web.agent_command import send_to_agent
from culture.web.mesh_model import mesh_model
from culture.web.page import PageRequest
from culture.web.view import WebView, get, post

_CLOSED = 30
_LONGEST = 2_000
_ID = re.compile(r"[qQ]\d{1,9}")


async def _questions(page: PageRequest) -> Response:
    questions = mesh_model(page).questions()
    return page.show(
        "questions.html",
        waiting=[each for each in questions if each.is_open],
        closed=[each for each in questions if not each.is_open][:_CLOSED],
        now=datetime.now(UTC),
        problem=page.web.ledger.problem,
    )


async def _question(page: PageRequest) -> Response:
    nick, id = page.path_params["nick"], page.path_params["id"]
    question = find(mesh_model(page).questions(), nick, id)
    if question is None:
        return page.refuse(f"{nick} has no question {id}.", 404)
    return page.show("question.html", question=question, now=datetime.now(UTC), problem=page.web.ledger.problem)


async def _answer(page: PageRequest) -> Response:
    nick, id = page.path_params["nick"], page.path_params["id"]
    text = " ".join(page.form.get("answer", "").split())[:_LONGEST]
    if not _ID.fullmatch(id) or find(mesh_model(page).questions(), nick, id) is None:
        return page.refuse(f"{nick} has no question {id}.", 404)
    if not text:
        return page.refuse("Enter an answer.", 400)
    result = await send_to_agent(await page.connection(), nick, f"{id.lower()} {text}")
    return page.show(
        "command_result.html",
        is_part=page.is_part,
        result=result,
        is_done=result.is_accepted,
        back=f"/questions/{quote(nick, safe='')}/{id}",
    )


def _open_count(page: PageRequest) -> int:
    return sum(each.is_open for each in mesh_model(page).questions())


VIEW = WebView(
    path="/questions",
    title="Questions",
    order=30,
    icon="questions",
    badge=_open_count,
    routes=[
        get("/questions", _questions),
        get("/questions/{nick}/{id}", _question),
        post("/questions/{nick}/{id}", _answer),
    ],
)
