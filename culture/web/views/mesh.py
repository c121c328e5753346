"""The mesh as a picture."""

from collections import Counter
from datetime import UTC, datetime

from starlette.responses import Response

from culture.web.mesh_model import board_of
from culture.web.mesh_svg import picture
from culture.web.page import PageRequest
from culture.web.view import WebView, shown


async def _mesh(page: PageRequest) -> Response:
    board = board_of(page)
    mesh = board.mesh()
    running = [agent for agent in board.agents() if agent.runs]
    return page.show(
        "mesh.html",
        picture=picture(mesh, board.server),
        mesh=mesh,
        counts=Counter(agent.server for agent in running),
        now=datetime.now(UTC),
        problem=page.web.ledger.problem,
    )


VIEW = WebView(path="/mesh", title="Mesh", order=45, icon="mesh", routes=[shown("/mesh", _mesh)])
