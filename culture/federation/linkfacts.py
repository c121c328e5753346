"""What a server says of its links to the whole mesh: facts of the ledger, rounded, and seldom where nothing happens."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from culture.federation.link import Stage
from culture.federation.peer import Peer
from culture.protocol.message import Message
from culture.protocol.names import fold, short_name
from culture.protocol.vocabulary import FactKind
from culture.server.core.render import iso_time
from culture.server.events import Noted
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

_PAUSE = 10.0  # seconds between two facts of a link whose state is the same, and between two of our questions
_ANYWAY = 3_600.0  # seconds after which it is said again, so that a view can tell what is old
_SMALLEST, _LARGEST = 5, 1_000_000
_FEW = 100
_OUTAGES = 5
"""So many that are over are told of a link."""
_LINKED, _SYNCING, _DOWN, _REMOVED = "linked", "syncing", "down", "removed"


class _Told(NamedTuple):
    value: dict[str, Any]
    at: float


class LinkFacts:
    """Says how each link is when that changes."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self._told: dict[str, _Told] = {}
        self._asked: dict[Peer, float] = {}
        """When each peer was last asked how far it is."""
        self._trips: dict[Peer, float] = {}
        """How many seconds the last question took, to the peer and back."""
        self._stood: set[str] = set()
        """The links that were up since the start: what was down before is no outage that we could tell of."""

    def look(self, figures: Iterable[Mapping[str, Any]]) -> None:
        """Say what is new of the links, which are as the figures of the status have them."""
        self._ask()
        links = {short_name(fold(entry["name"])): entry for entry in figures}
        for name, entry in links.items():
            self._say(name, self._value(name, entry))
        for name in [name for name in self._told if name not in links]:
            self._say(name, {"state": _REMOVED, "since": self._now()})
            del self._told[name]
            self._stood.discard(name)

    def heard(self, peer: Peer) -> None:
        """A read of a peer's lines is over; perhaps the answer to our question was among them."""
        if peer.link.echo:
            peer.link.echo = False
            if peer in self._asked:
                self._trips[peer] = self._host.monotonic() - self._asked[peer]

    def _ask(self) -> None:
        """Measure the way: a PING with our mark, which comes back with the PONG."""
        peers, now = dict.fromkeys(self._mesh.links.values()), self._host.monotonic()
        for known in (self._asked, self._trips):
            for gone in known.keys() - peers.keys():
                del known[gone]
        for peer in peers:
            is_due = now - self._asked.get(peer, -_PAUSE) >= _PAUSE
            if peer.link.stage is Stage.LIVE and is_due:
                self._asked[peer] = now
                peer.link.send(Message("PING", (self._mesh.own, peer.link.MARK)))

    def _value(self, name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        state = entry["state"] if entry["state"] in (_LINKED, _SYNCING) else _DOWN
        known = self._told.get(name)
        before = known.value if known is not None else {}
        outages, was_down = before.get("outages", []), before.get("state") == _DOWN
        if state == _DOWN:
            return _with({"state": state, "since": before["since"] if was_down else self._now()}, outages)
        value = {"state": state, "since": iso_time(entry["since"]), "behind": roughly(entry["behind"] or 0)}
        peer = self._mesh.links.get(name)
        trip = self._trips.get(peer) if peer is not None else None
        if trip is not None:
            value["lag_ms"] = milliseconds(max(trip, entry["lag"]))
        if was_down and name in self._stood:
            outages = [*outages, [before["since"], value["since"]]]
        self._stood.add(name)
        return _with(value, outages)

    def _say(self, name: str, value: dict[str, Any]) -> None:
        before, now = self._told.get(name), self._host.monotonic()
        if before is not None:
            pause = _PAUSE if before.value != value else _ANYWAY
            if _gist(before.value) == _gist(value) and now - before.at < pause:
                return
        self._told[name] = _Told(value, now)
        self._host.publish(Noted(self._host.stamp(), self._mesh.own, FactKind.LINK, name, json.dumps(value)))

    def _now(self) -> str:
        return iso_time(self._host.now())


def _with(value: dict[str, Any], outages: list[list[str]]) -> dict[str, Any]:
    return {**value, "outages": outages[-_OUTAGES:]} if outages else value


def _gist(value: Mapping[str, Any]) -> tuple[str, bool]:
    """What is told at once: the state, and the first measure."""
    return value["state"], "lag_ms" in value


def milliseconds(seconds: float) -> int:
    """Rounded up to 5, 10, 20, 50, 100 and so on: what changes all the time is no news."""
    step = _SMALLEST
    while step < seconds * 1_000 and step < _LARGEST:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return step


def roughly(count: int) -> int:
    """A number of events by its first digit; few are none, as some are always on their way."""
    if count < _FEW:
        return 0
    digits = str(count)
    return int(digits[0].ljust(len(digits), "0"))
