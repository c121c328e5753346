"""The page *Team*: tasks of teams by stage, with members, worktree and number of shifts."""

from starlette.responses import Response

from culture.ledger_views.tasks import by_stage
from culture.web.mesh_model import mesh_model
from culture.web.page import PageRequest
from culture.web.view import WebView, get

_MAX_PER_STAGE = 20


async def _team(page: PageRequest) -> Response:
    model = mesh_model(page)
    tasks = model.tasks()
    teams = sorted({task.team for task in tasks})
    selected = page.query.get("team", "")
    chosen = [task for task in tasks if not selected or task.team == selected]
    stages = by_stage(chosen)
    return page.show(
        "team.html",
        stages={stage: in_stage[:_MAX_PER_STAGE] for stage, in_stage in stages.items()},
        counts={stage: len(in_stage) for stage, in_stage in stages.items()},
        teams=teams,
        selected=selected,
        is_empty=not chosen,
        states={agent.nick: agent.state if agent.runs else "stopped" for agent in model.agents()},
        problem=page.web.ledger.problem,
    )


VIEW = WebView(path="/team", title="Team", order=50, icon="team", routes=[get("/team", _team)])
