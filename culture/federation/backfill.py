"""What a peer has missed: told after a reconnect, in order, and acknowledged when it is on disk."""

import asyncio
import re
import sqlite3
from typing import TYPE_CHECKING

from culture.federation.codec.fields import Garbled
from culture.federation.codec.messages import with_door
from culture.federation.link import Link, Stage
from culture.federation.logfile import Cursor, Entry
from culture.federation.peer import Peer
from culture.federation.topology import LinkState
from culture.federation.trust import EVERYWHERE, message_crosses
from culture.protocol.message import Message
from culture.server.core.network import Network
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

_CHUNK = 500
_MUCH = 1 << 20  # bytes that may wait for a peer while it is told what it missed
_TOO_MUCH = 4 << 20  # bytes behind which a peer is told from the log again, no faster than it reads
_STEP = 0.01
_PATIENCE = 10.0  # seconds that one peer may take to tell us all before the next is asked as well
_MOST_SHARED = 200_000


class Backfill:
    """Brings both sides of a link to the same state, and keeps count.

    Each side asks the other for what it missed, with RESUME: one peer at a time, so that what several have comes from
    the first. The others are told meanwhile what comes, and leave out what they were told.
    """

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self._asked: Link | None = None
        self._to_ask: list[Link] = []
        self.gaps: dict[str, int] = {}
        """How many messages each peer could not tell us any more, since the start."""

    def begun(self, link: Link, log: str) -> None:
        """The peer is ready: tell it everybody we know, then ask for the messages that we missed."""
        if self._mesh.log.is_full:
            link.end("What you say cannot be kept here at present")
            return
        link.log = log
        known = self._mesh.log.cursors.get(link.peer)
        link.read = known.position if known is not None and known.log == log else 0
        self._mesh.topology.direct.add(link.peer)
        self._mesh.topology.take(link.peer, LinkState(0, frozenset({self._mesh.own}), link.name, link.description))
        for line in self._mesh.presence.burst(link):
            link.send(line)
        link.send(Message("EOB", (), self._mesh.own))
        self._mesh.presence.announce()
        self._mesh.presence.reckon()
        self._to_ask.append(link)
        self._ask_next()

    def ended(self, link: Link) -> None:
        """The link is gone; if it was telling us what we missed, another one does."""
        if link in self._to_ask:
            self._to_ask.remove(link)
        if self._asked is link:
            self._asked = None
            self._ask_next()

    def _ask_next(self) -> None:
        if self._asked is None and self._to_ask:
            link = self._asked = self._to_ask.pop(0)
            link.send(Message("RESUME", (link.log, str(link.read))))
            self._host.start(self._not_forever(link))

    async def _not_forever(self, link: Link) -> None:
        await asyncio.sleep(_PATIENCE)
        if self._asked is link:
            with self._host.turn():
                self._asked = None
                self._ask_next()

    def caught_up(self, link: Link, position: int) -> None:
        """The peer has told everything up to here; from now on it tells what happens."""
        link.read = max(link.read, position)
        self.acknowledge()  # where there was nothing to tell, nothing gets on disk that would bring it about
        if self._asked is link:
            self._asked = None
            self._ask_next()

    def resumed(self, link: Link, log: str, position: int) -> None:
        """The peer asks for what it missed: it has this log up to this position."""
        if link.is_resumed:
            raise Garbled("RESUME comes once")
        link.is_resumed = True
        link.sent = position if log == self._mesh.log.id else 0
        self._host.start(self._tell(link))

    def fell_behind(self, peer: Peer) -> bool:
        """Does so much wait for a live peer that it is better told from the log again?"""
        if peer.connection.waiting <= _TOO_MUCH:
            return False
        peer.link.stage = Stage.SYNCING
        self._host.start(self._tell(peer.link))
        return True

    async def _tell(self, link: Link) -> None:
        try:
            if link.sent and (lost := await self._mesh.log.missing(link.sent)):
                with self._host.turn():
                    link.send(Message("GAP", (str(lost),), self._mesh.own))
            is_told = False
            while link.stage is Stage.SYNCING and not is_told:
                await self._drained(link)
                is_told = await self._tell_some(link)
        except (sqlite3.Error, OSError) as error:
            self._host.tell_operators(f"what {link.name} missed cannot be read: {error}")
            with self._host.turn():
                link.end("What you missed cannot be read at present")

    async def _tell_some(self, link: Link) -> bool:
        """Some of what is on disk, and behind the last of it what is not; was that all?"""
        committed = self._mesh.log.committed
        entries = await self._with_doors(link, await self._mesh.log.after(link.sent, _CHUNK))
        if link.stage is not Stage.SYNCING:
            return True
        with self._host.turn():
            for entry in entries:
                self._tell_entry(link, entry)
            if len(entries) == _CHUNK:
                return False
            link.sent = max(link.sent, committed)
            return self._go_live(link)

    async def _with_doors(self, link: Link, entries: list[Entry]) -> list[Entry]:
        """Messages of ours that an older version kept, with what the history knows: was the channel closed?

        That is told to the peer also where it has the message.
        """
        own = f"{self._mesh.own}."
        ids = {entry.position: id_of(entry.data) for entry in entries if _may_lack_door(entry.data)}
        ids = {position: id for position, id in ids.items() if id.startswith(own)}
        if not ids:
            return entries
        closed = await self._host.find_closed(tuple(ids.values()))
        link.shared.difference_update(closed)
        known = {position: closed[id] for position, id in ids.items() if id in closed}
        return [
            entry._replace(data=with_door(entry.data, known[entry.position])) if entry.position in known else entry
            for entry in entries
        ]

    def _go_live(self, link: Link) -> bool:
        """Tell what is not on disk yet as well; from here on everything is told at once."""
        rest = self._mesh.log.unwritten(link.sent)
        if rest is None:
            return False
        for entry in rest:
            self._tell_entry(link, entry)
        link.sent = self._mesh.log.position
        link.stage = Stage.LIVE
        link.shared.clear()
        link.send(Message("EOBACKFILL", (str(link.sent),), self._mesh.own))
        self._mesh.courier.forward()
        return True

    async def _drained(self, link: Link) -> None:
        """Wait while much is on its way to the peer."""
        peer = self._mesh.links.get(link.peer)
        while peer is not None and link.stage is Stage.SYNCING and peer.connection.waiting > _MUCH:  # noqa: ASYNC110
            await asyncio.sleep(_STEP)

    def _tell_entry(self, link: Link, entry: Entry) -> None:
        link.sent = entry.position
        id = id_of(entry.data)
        if id in link.shared or self._mesh.messages.is_taken_back(id):
            return
        if may_be_told(self._host.network, link, entry.channel, entry.data):
            link.send_bytes(numbered(entry.position, entry.data))

    def note_shared(self, link: Link, id: str) -> None:
        """The peer has this message, since it told it."""
        if link.stage is Stage.SYNCING and len(link.shared) < _MOST_SHARED:
            link.shared.add(id)

    def note_read(self, peer: Peer) -> None:
        """What came in one read is all here: remember how far that is."""
        link = peer.link
        position = self._mesh.messages.read(link)
        if link.log and position and self._mesh.log.cursors.get(link.peer) != (link.log, position):
            self._mesh.log.read_up_to(link.peer, Cursor(link.log, position))

    def settled(self) -> None:
        """More is on disk (told in the log's own thread)."""
        if self._mesh.loop is not None and not self._mesh.loop.is_closed():
            self._mesh.loop.call_soon_threadsafe(self.acknowledge)

    def acknowledge(self) -> None:
        """Tell peers what of theirs is on disk, and how far they know ours: their own messages are not told to them."""
        with self._host.turn():
            self._mesh.log.note_unkept()
            for name, peer in self._mesh.links.items():
                link, durable = peer.link, self._mesh.log.durable.get(name)
                if durable is not None and durable.log == link.log and durable.position > link.confirmed:
                    link.confirmed = durable.position
                    told = self._mesh.log.position if link.stage is Stage.LIVE else link.sent
                    link.send(Message("ACK", (str(durable.position), str(told))))
            self._mesh.courier.settle()

    def acknowledged(self, link: Link, position: int, told: int) -> None:
        """The peer has our log up to here on disk; its own was told up to there, or came from us."""
        link.acked = max(link.acked, position)
        link.read = max(link.read, told)

    def gap(self, link: Link, lost: int) -> None:
        """Messages that the peer does not keep any more: said, not hidden."""
        self.gaps[link.peer] = self.gaps.get(link.peer, 0) + lost
        self._host.tell_operators(
            f"gap of {lost}: so many messages and facts that {link.name} had since it was last linked are kept there no"
            " longer"
        )


def may_be_told(network: Network, link: Link, channel: str, data: str) -> bool:
    """May a kept message go over the link, and does the peer know such?"""
    return (channel != EVERYWHERE or link.speaks("LEDGER")) and message_crosses(network, channel, data, link.trust)


_SEALED = "@seal="  # begins a line of ours that has no tag before its seal
_OLD_MESSAGE = re.compile(r"[^ ]* :[^ ]+ (?:PRIVMSG|NOTICE|TAGMSG) ")


def _may_lack_door(data: str) -> bool:
    return data.startswith(_SEALED) and _OLD_MESSAGE.match(data) is not None


def numbered(position: int, data: str) -> bytes:
    """A message's line with its position in our log."""
    return f"@n={position};{data[1:]}\r\n".encode()


def id_of(data: str) -> str:
    """The id in a message's line."""
    tags = data[1:].partition(" ")[0].split(";")
    return next((tag[3:] for tag in tags if tag.startswith("id=")), "")
