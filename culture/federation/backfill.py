"""What a peer has missed: told after a reconnect, in order, and acknowledged when it is on disk."""

import asyncio
from typing import TYPE_CHECKING

from culture.federation.link import Link, Stage
from culture.federation.log import Cursor, Entry
from culture.federation.peer import Peer
from culture.federation.topology import LinkState
from culture.federation.trust import crosses_by_name
from culture.protocol.message import Message
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

_CHUNK = 500
_MUCH = 1 << 20
_STEP = 0.01
_TRIES = 6_000


class Backfill:
    """Brings both sides of a link to the same state, and keeps count."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host

    def resumed(self, link: Link, version: int, words: tuple[str, ...]) -> None:
        """The peer is ready: tell it everybody we know, then the messages it has missed."""
        theirs, survived, ours, position = words[:4]
        link.log = theirs
        known = self._mesh.log.cursors.get(link.peer)
        link.read = known.position if known is not None and known.log == theirs else 0
        link.sent = int(position) if ours == self._mesh.log.id else 0
        self._mesh.topology.direct.add(link.peer)
        self._mesh.topology.take(link.peer, LinkState(0, frozenset({self._mesh.own}), link.name, link.description))
        for line in self._mesh.presence.burst(link):
            link.send(line)
        link.send(Message("EOB", (), self._mesh.own))
        self._mesh.presence.announce()
        self._mesh.presence.reckon()
        self._host.start(self._backfill(link, int(survived)))

    async def _backfill(self, link: Link, survived: int) -> None:
        """What the peer sent us and may have lost, then what it has not read of our log, then a marker."""
        for entry in await self._mesh.log.from_peer(link.peer, survived):
            self._tell_entry(link, entry)
        lost = await self._mesh.log.missing(link.sent) if link.sent else 0
        if lost:
            link.send(Message("GAP", (str(lost),), self._mesh.own))
        while link.stage is Stage.SYNCING:
            entries = await self._mesh.log.after(link.sent, _CHUNK)
            with self._host.turn():
                for entry in entries:
                    self._tell_entry(link, entry)
                if len(entries) < _CHUNK and self._go_live(link):
                    return
            await self._drained(link)

    def _go_live(self, link: Link) -> bool:
        """Tell what is not on disk yet as well; from here on everything is told at once."""
        recent = self._mesh.log.recent
        if recent and recent[0].position > link.sent + 1 and len(recent) == recent.maxlen:
            return False
        for entry in list(recent):
            if entry.position > link.sent:
                self._tell_entry(link, entry)
        link.sent = max(link.sent, self._mesh.log.position)
        link.stage = Stage.LIVE
        link.send(Message("EOBACKFILL", (str(link.sent),), self._mesh.own))
        self._mesh.courier.forward()
        return True

    async def _drained(self, link: Link) -> None:
        """Wait while much is on its way to the peer."""
        peer = self._mesh.links.get(link.peer)
        for _ in range(_TRIES):
            if peer is None or not peer.connection.is_open or peer.connection.waiting <= _MUCH:
                return
            await asyncio.sleep(_STEP)

    def _tell_entry(self, link: Link, entry: Entry) -> None:
        link.sent = max(link.sent, entry.position)
        if entry.channel and crosses_by_name(self._host.network, entry.channel, link.trust):
            link.send_bytes(numbered(entry.position, entry.data))

    def note_read(self, peer: Peer) -> None:
        """What came in one read is all here: remember how far that is."""
        link = peer.link
        cursor = self._mesh.log.cursors.get(link.peer)
        if link.log and link.read and (cursor is None or cursor != (link.log, link.read)):
            self._mesh.log.read_up_to(link.peer, Cursor(link.log, link.read))

    def settled(self) -> None:
        """More is on disk (told in the log's own thread)."""
        if self._mesh.loop is not None and not self._mesh.loop.is_closed():
            self._mesh.loop.call_soon_threadsafe(self._acknowledge)

    def _acknowledge(self) -> None:
        with self._host.turn():
            for name, peer in self._mesh.links.items():
                durable = self._mesh.log.durable.get(name)
                if durable is not None and durable.log == peer.link.log and durable.position > peer.link.confirmed:
                    peer.link.confirmed = durable.position
                    peer.link.send(Message("ACK", (str(durable.position),)))
            done = self._mesh.log.written
            ready = [owed for owed in self._mesh.courier.owed if owed[0] <= done]
            self._mesh.courier.owed = [owed for owed in self._mesh.courier.owed if owed[0] > done]
            for _, link, id in ready:
                if link.stage is not Stage.CLOSED:
                    link.send(Message("CUSTODY", (id,)))

    def acknowledged(self, link: Link, position: int) -> None:
        """The peer has everything up to here on disk."""
        link.acked = max(link.acked, position)

    def gap(self, link: Link, lost: int) -> None:
        """Messages that no peer keeps any more: said, not hidden."""
        self._host.tell_operators(f"{lost} messages from {link.name} are lost: it does not keep them any more")


def numbered(position: int, data: str) -> bytes:
    """A message's line with its position in our log."""
    return f"@n={position};{data[1:]}\r\n".encode()
