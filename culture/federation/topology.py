"""Who is linked to whom, as each server says, and which way leads to whom."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from culture.federation.codec.fields import Garbled, is_epoch
from culture.protocol.message import Message
from culture.protocol.names import short_name, valid_short_name

_LATEST = 1 << 62
_LONGEST = 200
MOST_SERVERS = MOST_PEERS = 1_000
"""So many servers may say who they are linked to, and to so many: what a peer makes up must not fill the memory."""


class Way(NamedTuple):
    """How a server is reached: over so many links, the first of them to ``via``, the last from ``before``."""

    hops: int
    via: str
    before: str


class LinkState(NamedTuple):
    """What a server says of its links; of two the one with the higher version holds."""

    version: int
    peers: frozenset[str]
    name: str
    description: str
    epoch: str = ""
    """That of its ids: another server of its name has another one."""


class Reckoning(NamedTuple):
    """Who can be reached and how, and for those who cannot any more the two ends of the link that is missing."""

    ways: dict[str, Way]
    lost: dict[str, tuple[str, str]]


class Topology:
    """The mesh as a graph; servers are known by the first labels of their names."""

    def __init__(self, own: str) -> None:
        self._own = own
        self.states: dict[str, LinkState] = {}
        self.direct: set[str] = set()
        self._last: dict[str, Way] = {}

    def take(self, server: str, state: LinkState) -> bool:
        """Note what a server says; was it news?"""
        known = self.states.get(server)
        if server == self._own or (known is not None and known.version >= state.version):
            return False
        if known is None and server not in self.direct and not self._has_room():
            return False
        self.states[server] = state
        return True

    def _has_room(self) -> bool:
        """Is there room for one more? Where there is none, those give way that no way leads to."""
        if len(self.states) >= MOST_SERVERS:
            self.states = {name: state for name, state in self.states.items() if name in self._last}
        return len(self.states) < MOST_SERVERS

    def name(self, server: str) -> str:
        """The whole name of a server, as far as it is known."""
        state = self.states.get(server)
        return state.name if state is not None else server

    def before(self, server: str) -> str:
        """The last server on the way to this one."""
        way = self._last.get(server)
        return way.before if way is not None else self._own

    def reckon(self) -> "Reckoning":
        """Who can be reached now, and where the ways broke to those who could be before."""
        ways, before = self.ways(), self._last
        self._last = ways
        return Reckoning(ways, {server: self._break(server, before, ways) for server in before if server not in ways})

    def _break(self, server: str, before: dict[str, Way], ways: dict[str, Way]) -> tuple[str, str]:
        """The two ends of the link that is missing: the last one that is reached, and the next on the old way."""
        last = before[server].before
        while last != self._own and last not in ways:
            server, last = last, before[last].before
        return last, server

    def ways(self) -> dict[str, Way]:
        """Every server that can be reached. A link counts when both its ends know of it, ours at once."""
        found = {self._own: Way(0, self._own, self._own)}
        queue = deque([self._own])
        while queue:
            here = queue.popleft()
            hops, via, _ = found[here]
            for there in sorted(each for each in self._peers(here) if each not in found and self._knows(each, here)):
                found[there] = Way(hops + 1, there if here == self._own else via, here)
                queue.append(there)
        del found[self._own]
        return found

    def _peers(self, server: str) -> Iterable[str]:
        if server == self._own:
            return self.direct
        state = self.states.get(server)
        return state.peers if state is not None else ()

    def _knows(self, server: str, other: str) -> bool:
        if other == self._own:
            return True
        state = self.states.get(server)
        return state is not None and other in state.peers


def state_line(server: str, state: LinkState) -> Message:
    """``LINKSTATE name version :description``, with the server's peers in a tag."""
    tags = {"peers": ",".join(sorted(state.peers))} if state.peers else {}
    tags |= {"epoch": state.epoch} if state.epoch else {}
    return Message("LINKSTATE", (state.name, str(state.version), state.description), server, tags)


def read_state(line: Message) -> tuple[str, LinkState]:
    """The same again; raises Garbled."""
    name, version, description = line.params
    server, number = short_name(name), int(version)
    peers = frozenset(each for each in line.tags.get("peers", "").split(",") if each)
    epoch = line.tags.get("epoch", "")
    if not all(map(valid_short_name, (server, *peers))) or len(name) > _LONGEST or not 0 < number < _LATEST:
        raise Garbled("LINKSTATE of what is no server")
    if len(peers) > MOST_PEERS:
        raise Garbled("LINKSTATE of a server that is linked to more than there are")
    if epoch and not is_epoch(epoch):
        raise Garbled("LINKSTATE with what is no epoch")
    return server, LinkState(number, peers, name, description[:_LONGEST], epoch)
