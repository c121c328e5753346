"""Who is on the mesh: servers that can be reached, their users, what channels are set to."""

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from culture.federation import registers, settings
from culture.federation.following import Heard, Known, concerns_channel
from culture.federation.foundings import Verdict
from culture.federation.link import Link
from culture.federation.namesakes import Namesakes
from culture.federation.roster import Intake, Roster, burst
from culture.federation.splits import Splits
from culture.federation.topology import LinkState, Way, read_state, state_line
from culture.federation.trust import NotTheirs, check_origin, crosses_by_name, has_authority, is_restricted
from culture.protocol.message import Message
from culture.server.core.ids import MICROSECONDS
from culture.server.events import ChannelRenamed, Event, Linked
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

log = logging.getLogger(__name__)

_YEAR = 365 * 86_400
_PATIENCE = 1.0  # seconds that a peer has to hear what we know already


class Presence:
    """Keeps what this server knows of the others, and tells them of itself.

    Every server alone writes of its own users, and its events arrive in their order: but over one link. Another one may
    lack some, which may not cross it. So each server is heard from one peer at a time, the next one on the way to it.
    """

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self._splits = Splits(mesh, host)
        self._namesakes = Namesakes(mesh, host)
        self._version = 0
        self._heard = Heard()
        self.is_unclear = False
        """Was a channel renamed elsewhere since all were told who is here?"""
        self._disputes: dict[str, None] = {}
        """The servers that renamed a channel which was not renamed here."""
        self._disputed = float("-inf")
        """When everybody was last told so."""
        self._asked: dict[str, str] = {}
        """The servers whose users we asked for, and which peer."""

    def burst(self, link: Link) -> Iterator[Message]:
        """Everything the peer should know of who is where, and what was said of itself."""
        yield self.own_state()
        for server, state in self._mesh.topology.states.items():
            if state.version:
                yield state_line(server, state)
        yield from self.roster_lines(self._mesh.own, link)
        for server, known in self._mesh.known.items():
            if link.peer not in (server, known.via):
                yield from self.roster_lines(server, link)
        yield from registers.burst(self._host.network, self._mesh.own, link.trust)

    def own_state(self) -> Message:
        """Who we are linked to; told anew it has a greater version, also after a restart or a restore."""
        self._version = max(self._version + 1, int(self._host.now() * MICROSECONDS))
        config = self._host.config
        direct, epoch = frozenset(self._mesh.topology.direct), self._host.ids.epoch
        state = LinkState(self._version, direct, config.name, config.description, epoch)
        return state_line(self._mesh.own, state)

    def announce(self) -> None:
        """Tell everybody who we are linked to."""
        line = self.own_state()
        for peer in self._mesh.live():
            peer.link.send(line)

    def link_state(self, link: Link, line: Message) -> None:
        """What a server says of its links; passed on when it is news."""
        server, state = read_state(line)
        if state.version > (self._host.now() + _YEAR) * MICROSECONDS:
            raise NotTheirs  # nobody could outdo it
        if server == self._mesh.own:
            self._outdo(state)
            return
        check_origin(self._mesh, link, server)
        if self._namesakes.is_second(link, server, state, line):
            return
        before = self._mesh.topology.states.get(server)
        if self._mesh.topology.take(server, state):
            self._mesh.courier.offer_again(server, state.peers - (before.peers if before is not None else frozenset()))
            self._mesh.pass_on(line, link)
            self.reckon()

    def _outdo(self, state: LinkState) -> None:
        """Somebody remembers what we said once, as if it were newer than what we say: say it again."""
        if state.version > self._version:
            self._version = state.version
            self.announce()

    def reckon(self) -> None:
        """Who can be reached, after a change; who cannot any more is split off."""
        ways, lost = self._mesh.topology.reckon()
        with self._mesh.applying():
            if lost:
                self._host.network.ahead.clear()
                self._splits.lose(lost)
            for server in lost:
                self._mesh.known.pop(server, None)
                self._asked.pop(server, None)
            for server, way in ways.items():
                self._reach(server, way)
        self._mesh.courier.forward()
        for server in lost:
            self._take_second(server)

    def _take_second(self, server: str) -> None:
        """A server is gone: another one of its name may take its place."""
        second = self._namesakes.take(server)
        if second is not None:
            self._mesh.topology.states.pop(server, None)
            self.link_state(*second)

    def _reach(self, server: str, way: Way) -> None:
        state = self._mesh.topology.states.get(server)
        if state is None:
            return
        there = self._host.network.servers.get(server)
        news = (state.name, state.description, way.hops, way.via)
        if there is None or there != news:
            self._host.publish(Linked(self._host.stamp(), *news))
        known = self._mesh.known.get(server)
        if way.hops > 1 and (known is None or known.via != way.via) and self._asked.get(server) != way.via:
            self._ask(server, way.via)

    def _ask(self, server: str, via: str) -> None:
        """Have it told by another peer. What was lost on the old way may have concerned our users: say who is here."""
        if via in self._mesh.links:
            self._asked[server] = via
            link = self._mesh.links[via].link
            link.send(Message("WANT", (server,), self._mesh.own))
            for line in self.roster_lines(self._mesh.own, link):
                link.send(line)

    def clear_up(self) -> None:
        """Say who is here, where others could not follow what our users did: under a channel's old name."""
        if self._disputes and self._host.monotonic() - self._disputed >= _PATIENCE:
            self._settle_disputes()
        if not self.is_unclear:
            return
        self.is_unclear = False
        for peer in self._mesh.live():
            for line in self.roster_lines(self._mesh.own, peer.link):
                peer.link.send(line)

    def dispute(self, event: ChannelRenamed) -> None:
        """A channel was renamed elsewhere and is not here: its members are where their own servers say."""
        self._disputes[event.id.origin] = None

    def _settle_disputes(self) -> None:
        """Tell the others where those are who were not moved here, and ask where those are who were.

        Not for each channel at once: who has no say here could have everybody told much by little.
        """
        disputes, self._disputes, self._disputed = self._disputes, {}, self._host.monotonic()
        self.is_unclear = False
        for peer in self._mesh.live():
            others = [name for name, known in self._mesh.known.items() if peer.link.peer not in (name, known.via)]
            for server in (self._mesh.own, *others):
                for line in self.roster_lines(server, peer.link):
                    peer.link.send(line)
        for server in disputes:
            way = self._host.network.servers.get(server)
            if way is not None and way.via in self._mesh.links:
                self._mesh.links[way.via].link.send(Message("WANT", (server,), self._mesh.own))

    def follows(self, link: Link, event: Event) -> bool:
        """Is the event one that we do not know?

        What a server says of its own users is heard in order, from one peer. What happens to channels has a mark, or
        is said again by those whom it concerns: it is taken from whoever tells it first.
        """
        stamp = event.id
        known = self._mesh.known.get(stamp.origin)
        if known is None or (known.epoch == stamp.epoch and stamp.seq <= known.skips):
            return False
        if concerns_channel(event):
            return self._heard.is_new(stamp)
        if known.via != link.peer:
            return False
        known.version = stamp.seq if known.epoch != stamp.epoch else max(stamp.seq, known.version)
        known.epoch = stamp.epoch
        return True

    def roster(self, link: Link, roster: Roster) -> None:
        """The users of a server, as of a version; passed on when it is news."""
        server = roster.server
        check_origin(self._mesh, link, server)
        way = self._host.network.servers.get(server)
        if way is None or way.via != link.peer:
            return
        known, asked = self._mesh.known.get(server), self._asked.pop(server, None)
        is_distrusted = server in self._host.network.distrusted
        vouched = has_authority(link.trust) and not roster.is_unvouched and not is_distrusted
        if known is not None and known.via != link.peer and _is_behind(roster, known) and asked != _AGAIN:
            # What we have heard from another peer is on its way to this one: look again when it is there.
            known.via, known.skips = link.peer, known.version
            self._asked[server] = _AGAIN
            self._host.start(self._ask_again(server, link))
            return
        self._bound(link, roster)
        doubted = server in self._host.network.unvouched
        is_new = known is None or (known.epoch, known.version, doubted) != (roster.epoch, roster.version, not vouched)
        self._host.network.doubt(server, not vouched)
        self._mesh.known[server] = Known(roster.name, roster.epoch, roster.version, link.peer)
        if self._take(roster, vouched) or is_new:
            for peer in self._mesh.others(link):
                for line in self.roster_lines(server, peer.link):
                    peer.link.send(line)

    def _bound(self, link: Link, roster: Roster) -> None:
        """Leave out what does not cross the link."""
        network = self._host.network
        for name in list(roster.channels):
            channel = network.channel(name)
            is_outside = channel is not None and channel.shared is not None and roster.server not in channel.shared
            if is_outside or not crosses_by_name(network, name, link.trust):
                del roster.channels[name]
        if is_restricted(link.trust):
            for person in roster.people.values():
                person.metadata.clear()

    def _take(self, roster: Roster, vouched: bool) -> bool:
        name, before = self._host.config.name, self._mesh.topology.before(roster.server)
        ends = (name if before == self._mesh.own else self._mesh.topology.name(before), roster.name)
        batch = self._host.batch("netjoin", *ends)
        try:
            with self._mesh.applying(), self._host.within(batch):
                intake = Intake(self._host, roster, " ".join(ends), vouched)
                is_news = intake.take()
        finally:
            batch.close()
        for channel in intake.settled:
            self.answer(None, channel, Verdict.THEIRS)
        return is_news

    async def _ask_again(self, server: str, link: Link) -> None:
        await asyncio.sleep(_PATIENCE)
        if self._asked.get(server) == _AGAIN and self._mesh.links.get(link.peer) is not None:
            with self._host.turn():
                self._mesh.links[link.peer].link.send(Message("WANT", (server,), self._mesh.own))

    def wanted(self, link: Link, server: str) -> None:
        """The peer has no users of a server that it can reach through us."""
        known = self._mesh.known.get(server)
        if server == self._mesh.own or (known is not None and known.via != link.peer):
            for line in self.roster_lines(server, link):
                link.send(line)
            for channel in self._host.network.channels.values():
                if any(mark.origin == server for mark in channel.marks.values()):
                    self.tell_channel(link, channel.name)

    def channel(self, link: Link, line: Message) -> None:
        """What a channel is set to on the other side; passed on when it is news."""
        told = settings.read(line)
        if not has_authority(link.trust) or not crosses_by_name(self._host.network, told.name, link.trust):
            return
        with self._mesh.applying():
            is_news = registers.merge(self._host, told)
        if is_news:
            for peer in self._mesh.others(link):
                self.tell_channel(peer.link, told.name, told.lives)

    def answer(self, link: Link | None, name: str, verdict: Verdict) -> None:
        """Say what a channel is, where two were founded: to who founded it later. Ask where it is new to us."""
        if verdict is Verdict.NEW and link is not None:
            link.send(Message("WANT", (name,), self._mesh.own))
        elif verdict is Verdict.OURS and link is not None:
            self.tell_channel(link, name)
        elif verdict is Verdict.THEIRS:
            for peer in self._mesh.live():
                self.tell_channel(peer.link, name, lives=True)

    def tell_channel(self, link: Link, name: str, lives: bool = False) -> None:
        """Tell a peer what a channel is set to, if it may know."""
        channel = self._host.network.channel(name)
        if channel is not None and crosses_by_name(self._host.network, name, link.trust):
            link.send(settings.line_of(channel, self._mesh.own, lives))

    def roster_lines(self, server: str, link: Link) -> Iterator[Message]:
        """The users of a server, as far as we know and the peer may."""
        self._mesh.sharing.showing(server, link)
        network, ids = self._host.network, self._host.ids
        if server == self._mesh.own:
            return burst(network, server, self._host.config.name, ids.epoch, ids.last, link.trust)
        known = self._mesh.known[server]
        return burst(network, server, known.name, known.epoch, known.version, link.trust)


_AGAIN = ""


def _is_behind(roster: Roster, known: Known) -> bool:
    return roster.epoch == known.epoch and roster.version < known.version
