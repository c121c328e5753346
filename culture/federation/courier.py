"""Private messages: only towards the server of whom they are for, each kept until the next one has it (decision 8)."""

import asyncio
import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from culture.federation.belief import believed, check_words
from culture.federation.codec.fields import Garbled
from culture.federation.link import Link, Stage
from culture.federation.logfile import Held
from culture.federation.trust import check_source, crosses_by_name, is_vouched, may_write, owner_of, unvouched
from culture.protocol.message import Message
from culture.server.core.encode import wire
from culture.server.events import Invited, Noted, Receipted, Redacted, Said
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh
    from culture.federation.peer import Peer

log = logging.getLogger(__name__)

Private = Said | Redacted | Noted | Receipted

_AGAIN = 1.0
_MOST_HELD = 64 << 20  # characters of others' messages that wait here; those who have more keep it


class Courier:
    """Takes them over, and hands them on."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self._owed: list[tuple[int, Link, str]] = []
        """Whom to tell, once so many changes are on disk, that we have which message."""

    async def run(self) -> None:
        """Try again what has not gone on, and give up what waits too long."""
        while True:
            await asyncio.sleep(_AGAIN)
            with self._host.turn():
                self._give_up()
                self.forward()

    def _give_up(self) -> None:
        before = self._host.now() - self._mesh.settings.keep
        old = [held for waiting in self._mesh.log.held.values() for held in waiting.values() if held.at < before]
        for held in old:
            self._mesh.log.release(held)
        if old:
            servers = ", ".join(sorted({held.server for held in old}))
            self._host.tell_operators(f"{len(old)} private messages for {servers} waited too long and are given up")

    def send(self, event: Private, line: Message) -> None:
        """One of ours, for somebody elsewhere."""
        server = owner_of(event.target)
        if server != self._mesh.own and self._may_go(event, server):
            self._hold(Held(event.id.msgid, server, self._mesh.messages.sealed(str(line)), self._host.now()))

    def _may_go(self, event: Private, server: str) -> bool:
        """Over a restricted link only between members of a channel that crosses it; the sender is told where not."""
        peer, by = self._towards(server), self._host.by
        if peer is None or may_write(self._host.network, event.source, event.target, peer.link.trust):
            return True
        if by is not None and by.user is not None and not isinstance(event, Receipted):
            text = f"{event.target} cannot be written to from here: you share no channel that leads there"
            by.send(wire(Message("NOTICE", (by.user.nick, text), self._host.name)))
        return False

    def _hold(self, held: Held) -> None:
        self._take_back(held)
        self._mesh.log.hold(held)
        peer = self._towards(held.server)
        if peer is not None:
            self._hand_on(peer.link, held)

    def _take_back(self, held: Held) -> None:
        """What waits to go on is not handed on once its own server says that it was taken back."""
        line = Message.parse(held.data)
        if line.verb != "REDACT":
            return
        waiting = self._mesh.log.held.get(held.server, {}).get(line.params[1])
        if waiting is not None and waiting.id.partition(".")[0] == held.id.partition(".")[0]:
            self._mesh.log.release(waiting)

    def forward(self) -> None:
        """Send on what is held, each once over the link that leads to its server now."""
        for server, waiting in list(self._mesh.log.held.items()):
            peer = self._towards(server)
            if peer is not None:
                for held in list(waiting.values()):
                    self._hand_on(peer.link, held)

    def offer_again(self, peer: str, origins: Collection[str]) -> None:
        """Hand on to a peer once more what these servers wrote: it is linked to them now, and can ask whether they did.

        Before, it may have kept that in doubt, and given it up when no link came.
        """
        if peer in self._mesh.links:
            told = self._mesh.links[peer].link.told
            told -= {id for id in told if id.partition(".")[0] in origins}

    def _towards(self, server: str) -> "Peer | None":
        way = self._host.network.servers.get(server)
        peer = self._mesh.links.get(way.via) if way is not None else None
        return peer if peer is not None and peer.link.stage is Stage.LIVE and not peer.link.leaving else None

    def _hand_on(self, link: Link, held: Held) -> None:
        if held.id in link.told:
            return
        line = Message.parse(held.data)
        if not link.speaks(line.verb):
            self._mesh.log.release(held)  # the only way to whom it is for leads over somebody who does not know it
        elif may_write(self._host.network, line.source, line.params[0], link.trust):
            link.told.add(held.id)
            link.send_bytes(f"{held.data}\r\n".encode())

    def take(self, link: Link, line: Message, event: Private) -> None:
        """One that comes over a link: for somebody here, or to be handed on."""
        try:
            self._take(link, line, event)
        except Garbled as error:
            if event.id.origin == link.peer:
                raise
            # It would come again with every new link to a peer that is not to blame.
            link.warn("hands on %s, which is none: %s", event.id.msgid, error)
            self._owe(link, event.id.msgid)

    def _take(self, link: Link, line: Message, event: Private) -> None:
        id, server = event.id.msgid, owner_of(event.target)
        check_source(event)
        check_words(event)
        if event.id.origin == self._mesh.own and not self._mesh.messages.is_sealed(line):
            link.warn("tells of %s, which is not under our seal", id)
            return
        if self._mesh.log.is_full:
            link.end("What you say cannot be kept here at present")
            return
        if not may_write(self._host.network, event.source, event.target, link.trust):
            link.warn("hands on what %s may not write to %s over this link", event.source, event.target)
        elif server != self._mesh.own:
            if not self._pass_on(link, line, event):
                return
        elif not self._deliver(link, line, event):
            return
        self._owe(link, id)

    def _owe(self, link: Link, id: str) -> None:
        self._owed.append((self._mesh.log.taken, link, id))
        if not self._mesh.log.waiting:
            self.settle()  # no further write may come to say so

    def _pass_on(self, link: Link, line: Message, event: Private) -> bool:
        """Keep it until it can go on; False where there is no room, or it is not for this peer to say."""
        id, server = event.id.msgid, owner_of(event.target)
        if self._mesh.log.is_held(id, server):
            # It came back to us, so whoever we gave it to may have it no more, whatever they still say.
            for peer in self._mesh.links.values():
                peer.link.told.discard(id)
            return True
        # The next server believes us whatever we hand on of a server that is linked to us.
        if event.id.origin != self._mesh.own and self._mesh.messages.is_doubtful(link, line, event):
            return False
        if self._mesh.log.held_size >= _MOST_HELD:
            return False
        origin = event.id.origin
        vouched = origin == self._mesh.own or is_vouched(self._host.network, link.trust, origin, line)
        self._hold(Held(id, server, str(line) if vouched else unvouched(str(line)), self._host.now()))
        self._owe_earlier(event)
        return True

    def _owe_earlier(self, event: Private) -> None:
        """Those who told it while it was in doubt need not keep it either."""
        earlier = self._mesh.messages.told_before(event.id)
        self._owed += [(self._mesh.log.taken, other, event.id.msgid) for other in earlier]

    def _deliver(self, link: Link, line: Message, event: Private) -> bool:
        """Show it here, unless it was; False where it is not for this peer to say."""
        stamp = event.id
        if self._mesh.log.seen.knows(stamp.origin, stamp.epoch, stamp.seq):
            return True
        if stamp.origin == self._mesh.own:
            raise Garbled("a private message of ours")
        if self._mesh.messages.is_doubtful(link, line, event):
            return False
        self._mesh.log.seen.check_room(stamp.origin, stamp.epoch)
        line, event = self._mesh.messages.timed(line, event)
        vouched = is_vouched(self._host.network, link.trust, stamp.origin, line)
        shown = believed(self._host.network, event, vouched)
        self._mesh.log.append(stamp, "", str(line) if vouched else unvouched(str(line)))
        self._owe_earlier(event)
        if isinstance(shown, Redacted):
            self._mesh.log.take_back(shown.msgid, "", shown.id.at)
        if shown is not None:
            self._mesh.relay.apply(shown, None)
        return True

    def settle(self) -> None:
        """More is on disk: tell who gave it to us."""
        done = self._mesh.log.written
        ready = [owed for owed in self._owed if owed[0] <= done]
        if ready:
            self._owed = [owed for owed in self._owed if owed[0] > done]
            for _, link, id in ready:
                if link.stage is not Stage.CLOSED:
                    link.send(Message("CUSTODY", (id,)))

    def custody(self, link: Link, id: str) -> None:
        """The next server has it."""
        if id in link.told:
            link.told.discard(id)
            for waiting in list(self._mesh.log.held.values()):
                if id in waiting:
                    self._mesh.log.release(waiting[id])

    def route(self, line: Message, event: Private | Invited) -> None:
        """Send a line towards the server of whom it is for, if there is a way that it may go."""
        network = self._host.network
        whom = event.nick if isinstance(event, Invited) else event.target
        way = network.servers.get(owner_of(whom))
        peer = self._mesh.links.get(way.via) if way is not None else None
        if peer is None:
            return
        if isinstance(event, Invited):
            may_go = crosses_by_name(network, event.channel, peer.link.trust)
        else:
            may_go = may_write(network, event.source, event.target, peer.link.trust)
        if may_go:
            peer.link.send(line)
