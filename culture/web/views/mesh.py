"""The page *Mesh*: servers and links as a drawing and a table."""

from collections import Counter
from datetime import UTC, datetime

from starlette.responses import Response

from culture.web.mesh_model import mesh_model
from culture.web.mesh_svg import draw_mesh
from culture.web.page import PageRequest
from culture.web.view import WebView, get


async def _mesh(page: PageRequest) -> Response:
    model = mesh_model(page)
    mesh = model.mesh()
    running = [agent for agent in model.agents() if agent.runs]
    return page.show(
        "mesh.html",
        drawing=draw_mesh(mesh, model.server),
        mesh=mesh,
        counts=Counter(agent.server for agent in running),
        now=datetime.now(UTC),
        problem=page.web.ledger.problem,
    )


VIEW = WebView(path="/mesh", title="Mesh", order=45, icon="mesh", routes=[get("/mesh", _mesh)])
