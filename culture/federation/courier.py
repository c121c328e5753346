"""Private messages: only towards the server of whom they are for, each kept until the next one has it (decision 8)."""

from typing import TYPE_CHECKING

from culture.federation.codec import Garbled
from culture.federation.link import Link, Stage
from culture.federation.trust import check_source, owner_of
from culture.protocol.message import Message
from culture.server.events import Redacted, Said
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh


class Courier:
    """Takes them over, and hands them on."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self.owed: list[tuple[int, Link, str]] = []
        """Whom to tell, once so many changes are on disk, that we have which message."""

    def send(self, event: Said | Redacted, line: Message) -> None:
        """One of ours, for somebody elsewhere."""
        server = owner_of(event.target)
        if server != self._mesh.own:
            self._mesh.log.hold(event.id.msgid, server, str(line))
            self.forward()

    def forward(self) -> None:
        """Send on what is held, each once over the link that leads to its server now."""
        if not self._mesh.log.held:
            return
        ways = self._host.network.servers
        for held in list(self._mesh.log.held.values()):
            way = ways.get(held.server)
            peer = self._mesh.links.get(way.via) if way is not None else None
            if peer is not None and peer.link.stage is Stage.LIVE and held.id not in peer.link.told:
                peer.link.told.add(held.id)
                peer.link.send_bytes(f"{held.data}\r\n".encode())

    def take(self, link: Link, line: Message, event: Said | Redacted) -> None:
        """One that comes over a link: for somebody here, or to be handed on."""
        id, server = event.id.msgid, owner_of(event.target)
        check_source(event)
        if server != self._mesh.own:
            if id not in self._mesh.log.held:
                self._mesh.log.hold(id, server, str(line))
                self.forward()
        elif not self._mesh.log.seen.knows(event.id.origin, event.id.epoch, event.id.seq):
            if event.id.origin == self._mesh.own:
                raise Garbled("a private message of ours")
            self._mesh.log.append(event.id, "", "")
            self._mesh.relay.apply(self._mesh.relay.clamped(event), None)
        self.owed.append((self._mesh.log.ordered(), link, id))

    def custody(self, link: Link, id: str) -> None:
        """The next server has it."""
        link.told.discard(id)
        self._mesh.log.release(id)

    def route(self, line: Message, server: str) -> None:
        """Send a line towards a server, if there is a way."""
        way = self._host.network.servers.get(server)
        if way is not None and way.via in self._mesh.links:
            self._mesh.links[way.via].link.send(line)
