"""Who is on the mesh: servers that can be reached, their users, what channels are set to."""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from culture.federation import registers
from culture.federation.link import Link
from culture.federation.roster import Roster, burst, differences
from culture.federation.topology import LinkState
from culture.federation.trust import check_origin, crosses_by_name, owner_of
from culture.protocol.message import Message
from culture.protocol.names import short_name
from culture.server.events import Left, Linked, Unlinked
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

log = logging.getLogger(__name__)


class Known:
    """What is known of another server's users: up to which of its events."""

    __slots__ = ("epoch", "name", "version")

    def __init__(self, name: str, epoch: str, version: int) -> None:
        self.name = name
        self.epoch = epoch
        self.version = version


class Presence:
    """Keeps what this server knows of the others, and tells them of itself."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host

    def burst(self, link: Link) -> Iterator[Message]:
        """Everything the peer should know of who is where."""
        yield self.own_state()
        for server, state in self._mesh.topology.states.items():
            if server != link.peer and state.version:
                yield state_line(server, state)
        yield from self.roster_lines(self._mesh.own, link)
        for server in self._mesh.known:
            if server != link.peer:
                yield from self.roster_lines(server, link)
        yield from registers.burst(self._host.network, self._mesh.own, link.trust)

    def own_state(self) -> Message:
        """Who we are linked to."""
        stamp, config = self._host.stamp(), self._host.config
        state = LinkState(stamp.seq, frozenset(self._mesh.topology.direct), config.name, config.description)
        return state_line(self._mesh.own, state)

    def announce(self) -> None:
        """Tell everybody who we are linked to."""
        line = self.own_state()
        for peer in self._mesh.live():
            peer.link.send(line)

    def link_state(self, link: Link, line: Message) -> None:
        """What a server says of its links; passed on when it is news."""
        name, version, description = line.params
        server = short_name(name)
        check_origin(self._mesh, link, server)
        peers = frozenset(each for each in line.tags.get("peers", "").split(",") if each)
        if self._mesh.topology.take(server, LinkState(int(version), peers, name, description)):
            self._mesh.pass_on(line, link)
            self.reckon()

    def reckon(self) -> None:
        """Who can be reached, after a change; who cannot any more is split off."""
        ways = self._mesh.topology.ways()
        network = self._host.network
        with self._mesh.applying():
            for server in [server for server in network.servers if server not in ways]:
                self._split(server)
            for server, way in ways.items():
                state = self._mesh.topology.states.get(server)
                if state is None:
                    continue
                known = network.servers.get(server)
                if known is None or (known.hops, known.via) != way:
                    self._host.publish(Linked(self._host.stamp(), state.name, state.description, way.hops, way.via))
                if server not in self._mesh.known and way.via in self._mesh.links and way.hops > 1:
                    self._mesh.links[way.via].link.send(Message("WANT", (server,), self._mesh.own))
        self._mesh.courier.forward()

    def _split(self, server: str) -> None:
        name = self._host.network.servers[server].name
        reason = f"{self._host.config.name} {name}"
        for user in [user for user in self._host.network.users.values() if owner_of(user.nick) == server]:
            self._host.publish(Left(self._host.stamp(), user.source, reason))
        self._host.publish(Unlinked(self._host.stamp(), name))
        self._mesh.known.pop(server, None)
        log.info("%s cannot be reached any more", name)

    def roster(self, link: Link, roster: Roster) -> None:
        """The users of a server, as of a version; passed on when it is news."""
        check_origin(self._mesh, link, roster.server)
        known = self._mesh.known.get(roster.server)
        if known is not None and known.epoch == roster.epoch and known.version >= roster.version:
            return
        if roster.server == self._mesh.own:
            return
        self._mesh.known[roster.server] = Known(roster.name, roster.epoch, roster.version)
        with self._mesh.applying():
            for event in differences(self._host, roster, f"{self._host.config.name} {roster.name}"):
                self._host.publish(event)
        for peer in self._mesh.others(link):
            for line in self.roster_lines(roster.server, peer.link):
                peer.link.send(line)

    def wanted(self, link: Link, server: str) -> None:
        """The peer has no users of a server that it can reach through us."""
        if server in self._mesh.known or server == self._mesh.own:
            for line in self.roster_lines(server, link):
                link.send(line)

    def channel(self, link: Link, line: Message) -> None:
        """What a channel is set to on the other side."""
        if not crosses_by_name(self._host.network, line.params[0], link.trust):
            return
        before = self._host.network.channel(line.params[0])
        clock = dict(before.marks) if before is not None else None
        with self._mesh.applying():
            for event in registers.merge(self._host, line, bool(clock)):
                self._host.publish(event)
        after = self._host.network.channel(line.params[0])
        if after is not None and after.marks != (clock or {}):
            for peer in self._mesh.others(link):
                if crosses_by_name(self._host.network, after.name, peer.link.trust):
                    peer.link.send(registers.line_of(after, self._mesh.own))

    def roster_lines(self, server: str, link: Link) -> Iterator[Message]:
        """The users of a server, as far as we know and the peer may."""
        ids, name = self._host.ids, self._host.config.name
        if server == self._mesh.own:
            return burst(self._host.network, server, name, ids.epoch, ids.last, link.trust)
        known = self._mesh.known[server]
        return burst(self._host.network, server, known.name, known.epoch, known.version, link.trust)


def state_line(server: str, state: LinkState) -> Message:
    """``LINKSTATE name version :description``, with the server's peers in a tag."""
    tags = {"peers": ",".join(sorted(state.peers))} if state.peers else {}
    return Message("LINKSTATE", (state.name, str(state.version), state.description), server, tags)
