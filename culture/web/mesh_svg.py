"""The mesh as a drawing: where each server stands, and what its links look like."""

from dataclasses import dataclass
from math import cos, pi, sin

from culture.ledger_views.links import DOWN, LINKED, SYNCING, LinkView, MeshView
from culture.protocol.names import short_name

WIDTH, HEIGHT = 640, 420
_RADIUS = 150
_NARROW, _LOW = 420, 150
"""For one or two servers, side by side."""
_STATES = (LINKED, SYNCING, DOWN)


@dataclass(frozen=True, slots=True)
class MeshNode:
    """A server."""

    name: str
    short: str
    x: float
    y: float
    is_here: bool
    is_alone: bool
    """None of its links is up."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A link, from one server to another, with its label."""

    link: LinkView
    x1: float
    y1: float
    x2: float
    y2: float
    state: str
    """One of ours, whatever the servers say."""
    label: str

    @property
    def x(self) -> float:
        """Where the label stands."""
        return round((self.x1 + self.x2) / 2, 1)

    @property
    def y(self) -> float:
        """Where the label stands."""
        return round((self.y1 + self.y2) / 2, 1)

    @property
    def room(self) -> float:
        """How wide the label is."""
        return 18.0 + 7.5 * len(self.label)


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything to draw."""

    nodes: tuple[MeshNode, ...]
    edges: tuple[Edge, ...]
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def is_small(self) -> bool:
        """Whether it would look lost over the whole page."""
        return self.width < WIDTH


def picture(mesh: MeshView, here: str = "") -> Picture:
    """The servers on a circle, the first on top, always in the same places; two are side by side."""
    places = dict(zip(mesh.servers, _places(len(mesh.servers)), strict=True))
    up = {end for link in mesh.links if link.state in (LINKED, SYNCING) for end in link.ends}
    nodes = tuple(
        MeshNode(name, short_name(name), *places[name], name == here, name not in up and len(places) > 1)
        for name in mesh.servers
    )
    edges = tuple(
        Edge(link, *places[link.ends[0]], *places[link.ends[1]], _state(link), _label(link)) for link in mesh.links
    )
    return Picture(nodes, edges) if len(places) > 2 else Picture(nodes, edges, _NARROW, _LOW)


def _places(count: int) -> list[tuple[float, float]]:
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
