"""The board of a team: its tasks by how far they are, with worktrees and shifts."""

from starlette.responses import Response

from culture.ledger_views.tasks import by_stage
from culture.web.mesh_model import board_of
from culture.web.page import PageRequest
from culture.web.view import WebView, shown

_MOST_OVER = 20


async def _team(page: PageRequest) -> Response:
    board = board_of(page)
    found = board.tasks()
    teams = sorted({task.team for task in found})
    wanted = page.query.get("team", "")
    chosen = [task for task in found if not wanted or task.team == wanted]
    stages = {stage: tasks[:_MOST_OVER] for stage, tasks in by_stage(chosen).items()}
    return page.show(
        "team.html",
        stages=stages,
        counts={stage: len(tasks) for stage, tasks in by_stage(chosen).items()},
        teams=teams,
        wanted=wanted,
        is_empty=not chosen,
        states={agent.nick: agent.state if agent.runs else "stopped" for agent in board.agents()},
        problem=page.web.ledger.problem,
    )


VIEW = WebView(path="/team", title="Team", order=50, icon="team", routes=[shown("/team", _team)])
