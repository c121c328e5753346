"""Who is linked to whom, as each server says, and which way leads to whom."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple


class Way(NamedTuple):
    """How a server is reached: over so many links, the first of them to ``via``."""

    hops: int
    via: str


class LinkState(NamedTuple):
    """What a server says of its links; of two the one with the higher version holds."""

    version: int
    peers: frozenset[str]
    name: str
    description: str


class Topology:
    """The mesh as a graph; servers are known by the first labels of their names."""

    def __init__(self, own: str) -> None:
        self._own = own
        self.states: dict[str, LinkState] = {}
        self.direct: set[str] = set()

    def take(self, server: str, state: LinkState) -> bool:
        """Note what a server says; was it news?"""
        known = self.states.get(server)
        if server == self._own or (known is not None and known.version >= state.version):
            return False
        self.states[server] = state
        return True

    def ways(self) -> dict[str, Way]:
        """Every server that can be reached. A link counts when both its ends know of it, ours at once."""
        found = {self._own: Way(0, self._own)}
        queue = deque([self._own])
        while queue:
            here = queue.popleft()
            for there in sorted(self._neighbours(here)):
                if there not in found:
                    hops, via = found[here]
                    found[there] = Way(hops + 1, there if here == self._own else via)
                    queue.append(there)
        del found[self._own]
        return found

    def _neighbours(self, server: str) -> Iterable[str]:
        if server == self._own:
            return self.direct
        state = self.states.get(server)
        if state is None:
            return ()
        return (peer for peer in state.peers if peer != self._own and self._knows(peer, server))

    def _knows(self, server: str, other: str) -> bool:
        state = self.states.get(server)
        return state is not None and other in state.peers
