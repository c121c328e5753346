"""How the links are, in figures: for STATS and for those who watch the server."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from culture.federation.link import Stage
from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.server.context import Context
from culture.server.metrics import Sample
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

_KILO = 1024


class PeerStatus(NamedTuple):
    """One configured link; what only a link that stands has is 0 without it."""

    name: str
    is_up: bool
    is_live: bool = False
    """Has it all that it missed?"""
    since: float = 0.0
    sent: int = 0
    received: int = 0
    """Lines."""
    queued: int = 0
    """Bytes that it has not read yet."""
    acknowledged: int = 0
    """How far it has our log on disk."""
    backlog: int = 0
    """Messages of our log beyond that."""
    unknown: int = 0
    """Lines that nobody here knows."""
    lag: float = 0.0
    """For how many seconds it has not got something on disk that it was told."""


def mesh_status(mesh: "Mesh") -> list[PeerStatus]:
    """Every link that there shall be."""
    lags = {entry["name"]: entry.get("lag", 0) for entry in mesh.status.figures()}
    found = []
    for short, settings in mesh.dialler.wanted.items():
        peer = mesh.links.get(short)
        if peer is None:
            found.append(PeerStatus(settings.name, False))
            continue
        link = peer.link
        found.append(
            PeerStatus(
                settings.name,
                True,
                link.stage is Stage.LIVE,
                peer.since,
                peer.sent,
                peer.received,
                peer.connection.waiting,
                link.acked,
                max(0, link.sent - link.acked),
                link.unknown,
                lags.get(settings.name, 0),
            )
        )
    return found


class Views:
    """Shows them."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        host.stats("l", self.rows)
        self._add()

    def rows(self, ctx: Context) -> Iterator[Message]:
        """``STATS l``: 211 for each link (RFC 2812 §3.4.4), and behind it what the mesh needs to know."""
        now = self._host.now()
        for each in mesh_status(self._mesh):
            age = str(max(0, int(now - each.since))) if each.is_up else "0"
            words = (each.name, str(each.queued), str(each.sent), str(each.received), age)
            state = ("live" if each.is_live else "syncing") if each.is_up else "down"
            text = f"{state}, acknowledged {each.acknowledged}, backlog {each.backlog}, lag {each.lag:g} s"
            text += f", {each.unknown} lines unknown here" if each.unknown else ""
            yield ctx.numeric(Numeric.RPL_STATSLINKINFO, *words, text=text)

    def _add(self) -> None:
        gauge, counter = self._host.gauge, self._host.counter
        gauge("link_up", "Whether a configured link stands.", self._each(lambda each: each.is_up, down=True))
        counter("link_sent_lines_total", "Lines told since the link stands.", self._each(lambda each: each.sent))
        counter("link_received_lines_total", "Lines heard since then.", self._each(lambda each: each.received))
        unknown = self._each(lambda each: each.unknown)
        counter("link_unknown_lines_total", "Lines of them that nobody here knows: of a newer version.", unknown)
        gauge("link_queued_bytes", "What the peer has not read yet.", self._each(lambda each: each.queued))
        gauge("link_acknowledged", "How far it has our log on disk.", self._each(lambda each: each.acknowledged))
        gauge("link_backlog", "Messages beyond that.", self._each(lambda each: each.backlog))
        gauge("link_lag_seconds", "How long it has not confirmed what it was told.", self._each(lambda each: each.lag))

    def _each(self, figure: Callable[[PeerStatus], float], down: bool = False) -> Callable[[], Iterator[Sample]]:
        def read() -> Iterator[Sample]:
            for each in mesh_status(self._mesh):
                if each.is_up or down:
                    yield {"peer": each.name}, float(figure(each))

        return read
