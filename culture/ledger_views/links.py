"""Servers and the links between them, from the ``link`` facts of the ledger.

Each server publishes the state of its own end of a link, so a link has up to two reports. The worse one counts: a
server that crashed publishes nothing more, and its last report may still say ``linked``. For the same reason an end
that has published nothing for two hours counts as down.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from culture.ledger_views import safe_values
from culture.ledger_views.ledger import LedgerFact
from culture.protocol.names import fold
from culture.protocol.vocabulary import FactKind

LINKED, SYNCING, DOWN, REMOVED = "linked", "syncing", "down", "removed"
_SILENT = timedelta(hours=2)
"""Servers publish the state of their links every hour; a report older than this counts as down."""
_BEST_FIRST = (LINKED, SYNCING)
_LONGEST_WORD = 40
_MOST_OUTAGES = 20


@dataclass(frozen=True, slots=True)
class Side:
    """State of a link between servers, as the server at one end reports it in its ``link`` fact."""

    server: str
    peer: str
    state: str
    updated: datetime
    lag_ms: float | None = None
    since: datetime | None = None
    behind: int = 0
    """Number of events that still have to cross it."""
    outages: tuple[tuple[datetime, datetime], ...] = ()
    """Start and end of its recent outages."""


@dataclass(frozen=True, slots=True)
class LinkView:
    """A link between two servers, with the state that each end reports."""

    ends: tuple[str, str]
    sides: tuple[Side, ...]

    @property
    def state(self) -> str:
        """The worse of the states of the link that its two ends report."""
        return max((side.state for side in self.sides), key=_badness)

    @property
    def lag_ms(self) -> float | None:
        """Lag of the link in milliseconds, the greater of both ends' values; None unless it is up."""
        measured = [side.lag_ms for side in self.sides if side.lag_ms is not None]
        return max(measured, default=None) if self.state == LINKED else None

    @property
    def behind(self) -> int:
        """Number of events that wait to be sent over the link, in both directions."""
        return sum(side.behind for side in self.sides)

    @property
    def outages(self) -> tuple[tuple[datetime, datetime], ...]:
        """Start and end of each recent outage of the link.

        Outages that overlap, as those that both ends report, are merged.
        """
        merged: list[tuple[datetime, datetime]] = []
        for began, ended in sorted(outage for side in self.sides for outage in side.outages):
            if merged and began <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(merged[-1][1], ended)
            else:
                merged.append((began, ended))
        return tuple(merged)


@dataclass(frozen=True, slots=True)
class MeshView:
    """The names of all servers of the mesh, sorted, and the links between them."""

    servers: tuple[str, ...]
    links: tuple[LinkView, ...]


def mesh(facts: Iterable[LedgerFact], here: str = "", now: datetime | None = None) -> MeshView:
    """Return the servers and links of the mesh, combined from the ``link`` facts of all servers.

    ``here``: name of a server to include even if it has no links. ``now``: the present time, with which a report older
    than two hours counts as down; None to believe old reports.
    """
    sides: dict[tuple[str, str], Side] = {}
    for fact in facts:
        if fact.kind == FactKind.LINK and (side := _side(fact, now)) is not None:
            sides[fold(side.server), fold(side.peer)] = side
    pairs: dict[tuple[str, str], list[Side]] = {}
    names = {fold(here): here} if here else {}
    for (server, peer), side in sorted(sides.items()):
        names |= {server: side.server} | ({peer: side.peer} if peer not in names else {})
        pairs.setdefault((min(server, peer), max(server, peer)), []).append(side)
    links = tuple(LinkView((names[one], names[other]), tuple(both)) for (one, other), both in sorted(pairs.items()))
    return MeshView(tuple(names[name] for name in sorted(names)), links)


def _side(fact: LedgerFact, now: datetime | None) -> Side | None:
    value = fact.value
    state = safe_values.text(value, "state", _LONGEST_WORD) or DOWN
    if fold(fact.nick) == fold(fact.key) or state == REMOVED:
        return None
    is_silent = now is not None and now - fact.at > _SILENT
    return Side(
        server=fact.nick,
        peer=fact.key,
        state=DOWN if is_silent else state,
        updated=fact.at,
        lag_ms=safe_values.amount(value, "lag_ms"),
        since=safe_values.moment(value, "since"),
        behind=safe_values.count(value, "behind"),
        outages=tuple(_outages(value.get("outages"))),
    )


def _outages(value: object) -> Iterator[tuple[datetime, datetime]]:
    for pair in value[:_MOST_OUTAGES] if isinstance(value, list) else ():
        if isinstance(pair, list) and len(pair) == 2:
            began, ended = (safe_values.moment({"at": at}, "at") for at in pair)
            if began is not None and ended is not None and began < ended:
                yield began, ended


def _badness(state: str) -> tuple[int, str]:
    return (_BEST_FIRST.index(state) if state in _BEST_FIRST else len(_BEST_FIRST)), state
