"""Two servers of one name: only the first of them is part of the mesh, until it is gone."""

from typing import TYPE_CHECKING

from culture.federation.link import Link
from culture.federation.topology import LinkState
from culture.protocol.message import Message
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh


class Namesakes:
    """Keeps what a second server of a name says of its links, for when the first one is gone."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self._waiting: dict[str, tuple[Link, Message]] = {}
        self._told: set[tuple[str, str]] = set()

    def is_second(self, link: Link, server: str, state: LinkState, line: Message) -> bool:
        """Does this come from another server than the one of that name which is reached over another link?"""
        known, there = self._mesh.topology.states.get(server), self._host.network.servers.get(server)
        if known is None or there is None or there.via == link.peer or not (known.epoch and state.epoch):
            return False
        if known.epoch == state.epoch:
            return False
        self._waiting[server] = (link, line)
        if (server, link.peer) not in self._told:
            self._told.add((server, link.peer))
            self._host.tell_operators(f"two servers are called {server}: the one behind {link.name} is not let in")
        return True

    def take(self, server: str) -> tuple[Link, Message] | None:
        """What the second one said, now that the first is gone."""
        found = self._waiting.pop(server, None)
        if found is None or self._mesh.links.get(found[0].peer) is None:
            return None
        return found
