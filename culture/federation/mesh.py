"""The mesh as one server sees it: its parts, put together."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from culture.config.links import Federation
from culture.config.links import Link as LinkSettings
from culture.federation.admission import Admission
from culture.federation.backfill import Backfill
from culture.federation.courier import Courier
from culture.federation.dialling import Dialler
from culture.federation.link import Link, Refusal, Stage
from culture.federation.log import EventLog
from culture.federation.peer import Peer
from culture.federation.presence import Known, Presence
from culture.federation.relay import Relay
from culture.federation.topology import Topology
from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.server.commands import command
from culture.server.connection import Connection
from culture.server.context import Context
from culture.server.errors import Refused
from culture.server.skill import Host, Skill

_LOOK = 1.0
_HOURLY = 3_600


class Mesh(Skill):
    """The links of this server."""

    name = "federation"
    Settings = Federation

    def __init__(self, host: Host, settings: Federation) -> None:
        super().__init__(host, settings)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.own = host.config.short_name
        self.links: dict[str, Peer] = {}
        """The peers that are linked, by the first label of their names."""
        self.greeters: set[Peer] = set()
        """Those that have not shown who they are."""
        self.known: dict[str, Known] = {}
        self.is_applying = False
        self.topology = Topology(self.own)
        self.admission = Admission(self, host)
        self.presence = Presence(self, host)
        self.backfill = Backfill(self, host)
        self.relay = Relay(self, host)
        self.courier = Courier(self, host)
        self.dialler = Dialler(self, host)
        self.log = EventLog(host.folder / "log.db", self.backfill.settled, host.tell_operators)

    def places(self) -> Iterable[object]:
        """The objects whose hooks and verbs are the skill's."""
        return (self, self.relay)

    async def start(self) -> None:
        """Open the log and begin to dial."""
        self.loop = asyncio.get_running_loop()
        await asyncio.to_thread(self.log.open)
        for link in self.host.config.links:
            self.dialler.want(link)
        self.host.start(self._watch())

    async def stop(self) -> None:
        """Say goodbye, and write what is left."""
        for peer in [*self.links.values(), *self.greeters]:
            peer.link.end("Server shutting down")
        await asyncio.to_thread(self.log.close, 5.0)

    async def _watch(self) -> None:
        """Ask peers that are silent whether they are there, and forget what is too old."""
        rounds = 0
        while True:
            await asyncio.sleep(_LOOK if self.settings.ping >= _LOOK else self.settings.ping / 2)
            with self.host.turn():
                for peer in [*self.links.values(), *self.greeters]:
                    self._look_after(peer)
            rounds += 1
            if rounds % 3600 == 1:
                await self.log.prune(self.host.now() - self.settings.keep)

    def _look_after(self, peer: Peer) -> None:
        silent = self.host.monotonic() - peer.connection.last_active
        if silent > self.settings.timeout:
            peer.link.end(f"No answer for {self.settings.timeout:g} seconds")
        elif silent > self.settings.ping and not peer.asked and peer.link.stage is not Stage.GREETING:
            peer.asked = True
            peer.link.send(Message("PING", (self.own,)))

    @command("SERVER", params=3, early=True)
    def server(self, ctx: Context, message: Message) -> None:
        """``SERVER name 1 :description``: from here on the connection is a link (RFC 2813 §4.1.2)."""
        session = ctx.session
        if session.user is not None:
            raise Refused(Numeric.ERR_ALREADYREGISTERED)
        secret, certificate = session.password, session.tls.certificate if session.tls is not None else None
        peer = self.adopt(self.host.take(session), None)
        peer.certificate = lambda: certificate
        peer.connection.owner = peer
        try:
            peer.link.introduce(message.params[0], secret, message.params[-1])
        except Refusal as refusal:
            peer.link.end(str(refusal))

    def adopt(self, connection: Connection, settings: LinkSettings | None) -> Peer:
        """A connection that is a link, or wants to be."""
        peer = Peer(self, connection, self.host.dirty, self.lost, settings)
        peer.after = self.backfill.note_read
        self.greeters.add(peer)
        return peer

    def peer_of(self, link: Link) -> Peer:
        """Whose link it is."""
        return next(peer for peer in (*self.greeters, *self.links.values()) if peer.link is link)

    def lost(self, peer: Peer, reason: str) -> None:
        """A link is gone: so are those who can only be reached over it."""
        self.greeters.discard(peer)
        link = peer.link
        link.stage = Stage.CLOSED
        if self.links.get(link.peer) is peer:
            del self.links[link.peer]
            self.topology.direct.discard(link.peer)
            self.courier.owed = [owed for owed in self.courier.owed if owed[1] is not link]
            with self.host.turn():
                self.host.tell_operators(f"the link to {link.name} is lost: {reason}")
                self.presence.announce()
                self.presence.reckon()
        self.dialler.again(link.peer)

    def live(self) -> Iterable[Peer]:
        """The peers that are told what happens."""
        return [
            peer for peer in self.links.values() if peer.link.stage in (Stage.SYNCING, Stage.LIVE) and peer.link.log
        ]

    def others(self, link: Link | None) -> Iterable[Peer]:
        """The same but for this one."""
        return [peer for peer in self.live() if peer.link is not link]

    def pass_on(self, line: Message, link: Link) -> None:
        """Tell the others what one has said."""
        for peer in self.others(link):
            peer.link.send(line)

    @contextmanager
    def applying(self) -> Iterator[None]:
        """What is published in here was not done here."""
        before, self.is_applying = self.is_applying, True
        try:
            yield
        finally:
            self.is_applying = before
