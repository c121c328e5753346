"""The mesh as its servers tell it: who is linked with whom, and how well."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from culture.ledger_views import safe_values
from culture.ledger_views.ledger import LedgerFact
from culture.protocol.names import fold
from culture.protocol.vocabulary import FactKind

LINKED, SYNCING, DOWN, REMOVED = "linked", "syncing", "down", "removed"
_SILENT = timedelta(hours=2)
"""Every hour a server says how its links are; one that is silent for longer is gone."""
_WORSE = (LINKED, SYNCING)
_LONGEST_WORD = 40
_MOST_OUTAGES = 20


@dataclass(frozen=True, slots=True)
class Side:
    """A link as the server at one end tells it."""

    server: str
    peer: str
    state: str
    told: datetime
    lag_ms: float | None = None
    since: datetime | None = None
    behind: int = 0
    """So many events are still to cross it."""
    outages: tuple[tuple[datetime, datetime], ...] = ()
    """From when to when it was down of late."""


@dataclass(frozen=True, slots=True)
class LinkView:
    """Two servers, and the link between them as both tell it."""

    ends: tuple[str, str]
    sides: tuple[Side, ...]

    @property
    def state(self) -> str:
        """The worse of both words: one that died says nothing more."""
        return max((side.state for side in self.sides), key=_badness)

    @property
    def lag_ms(self) -> float | None:
        """The greater of what both measure; None while it is not up."""
        known = [side.lag_ms for side in self.sides if side.lag_ms is not None]
        return max(known, default=None) if self.state == LINKED else None

    @property
    def behind(self) -> int:
        """How many events are still to cross it."""
        return sum(side.behind for side in self.sides)

    @property
    def outages(self) -> tuple[tuple[datetime, datetime], ...]:
        """From when to when it was down of late; what both ends noticed is one."""
        found: list[tuple[datetime, datetime]] = []
        for began, ended in sorted(outage for side in self.sides for outage in side.outages):
            if found and began <= found[-1][1]:
                found[-1] = found[-1][0], max(found[-1][1], ended)
            else:
                found.append((began, ended))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class MeshView:
    """All servers, by name, and the links between them."""

    servers: tuple[str, ...]
    links: tuple[LinkView, ...]


def mesh(facts: Iterable[LedgerFact], here: str = "", now: datetime | None = None) -> MeshView:
    """The picture that the servers draw together; ``here`` is in it also when it has no links.

    With ``now`` the links are down of which a server has not spoken for long.
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
        told=fact.at,
        lag_ms=safe_values.amount(value, "lag_ms"),
        since=safe_values.moment(value, "since"),
        behind=safe_values.count(value, "behind"),
        outages=tuple(_outages(value.get("outages"))),
    )


def _outages(told: object) -> Iterator[tuple[datetime, datetime]]:
    for pair in told[:_MOST_OUTAGES] if isinstance(told, list) else ():
        if isinstance(pair, list) and len(pair) == 2:
            began, ended = (safe_values.moment({"at": at}, "at") for at in pair)
            if began is not None and ended is not None and began < ended:
                yield began, ended


def _badness(state: str) -> tuple[int, str]:
    return (_WORSE.index(state) if state in _WORSE else len(_WORSE)), state
