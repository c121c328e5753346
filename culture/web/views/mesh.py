"""The page *Mesh*: servers and links as a drawing (SVG), whose layout is made here, and a table."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from math import cos, pi, sin

from starlette.responses import Response

from culture.ledger_views.links import DOWN, LINKED, SYNCING, LinkView, MeshView
from culture.protocol.names import short_name
from culture.web.mesh_model import mesh_model
from culture.web.page import PageRequest
from culture.web.view import WebView, get

WIDTH, HEIGHT = 640, 420
_RADIUS = 150
_NARROW, _LOW = 420, 150
"""Width and height of the drawing for one or two servers, side by side."""
_STATES = (LINKED, SYNCING, DOWN)


@dataclass(frozen=True, slots=True)
class MeshNode:
    """A server in the mesh drawing: its names, its position, and whether it has no links."""

    name: str
    short: str
    x: float
    y: float
    is_here: bool
    is_alone: bool
    """No link of this server is up."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A link in the mesh drawing: a line between two servers, with its label."""

    link: LinkView
    x1: float
    y1: float
    x2: float
    y2: float
    state: str
    """``linked``, ``syncing`` or ``down``; any other state of a server counts as down."""
    label: str

    @property
    def x(self) -> float:
        """Horizontal centre of the link's label in SVG units."""
        return round((self.x1 + self.x2) / 2, 1)

    @property
    def y(self) -> float:
        """Vertical centre of the link's label in SVG units."""
        return round((self.y1 + self.y2) / 2, 1)

    @property
    def label_width(self) -> float:
        """Width of the link's label in SVG units."""
        return 18.0 + 7.5 * len(self.label)


@dataclass(frozen=True, slots=True)
class MeshDrawing:
    """The mesh drawing: all servers and links with their positions."""

    nodes: tuple[MeshNode, ...]
    edges: tuple[Edge, ...]
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def is_small(self) -> bool:
        """Whether the drawing is narrower than the web page."""
        return self.width < WIDTH


def draw_mesh(mesh: MeshView, own: str = "") -> MeshDrawing:
    """Return the drawing of a mesh: servers in a circle, clockwise by name from the top.

    One or two servers are placed side by side. ``own``: name of the web page's own server, which is marked.
    """
    positions = dict(zip(mesh.servers, _positions(len(mesh.servers)), strict=True))
    up = {end for link in mesh.links if link.state in (LINKED, SYNCING) for end in link.ends}
    nodes = tuple(
        MeshNode(name, short_name(name), *positions[name], name == own, name not in up and len(positions) > 1)
        for name in mesh.servers
    )
    edges = tuple(
        Edge(link, *positions[link.ends[0]], *positions[link.ends[1]], _state(link), _label(link))
        for link in mesh.links
    )
    return MeshDrawing(nodes, edges) if len(positions) > 2 else MeshDrawing(nodes, edges, _NARROW, _LOW)


def _positions(count: int) -> list[tuple[float, float]]:
    if count < 3:
        return (
            [(_NARROW / 2, _LOW / 2)] if count == 1 else [(_NARROW / 6, _LOW / 2), (_NARROW * 5 / 6, _LOW / 2)][:count]
        )
    angles = [-pi / 2 + 2 * pi * number / count for number in range(count)]
    return [
        (round(WIDTH / 2 + 1.45 * _RADIUS * cos(angle), 1), round(HEIGHT / 2 + _RADIUS * sin(angle), 1))
        for angle in angles
    ]


def _state(link: LinkView) -> str:
    return link.state if link.state in _STATES else DOWN


def _label(link: LinkView) -> str:
    if link.state != LINKED:
        return link.state
    behind = f", {link.behind} behind" if link.behind else ""
    return f"linked{behind}" if link.lag_ms is None else f"{link.lag_ms:.0f} ms{behind}"


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
