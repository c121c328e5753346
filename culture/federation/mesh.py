"""The mesh as one server sees it: its parts, put together."""

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from culture.config.links import Federation
from culture.config.links import LinkConfig as LinkSettings
from culture.federation.admission import Admission
from culture.federation.backfill import Backfill
from culture.federation.core import Refusal
from culture.federation.courier import Courier
from culture.federation.dialling import Dialler
from culture.federation.enrolment import Enrolment
from culture.federation.farewell import Farewell
from culture.federation.following import Known
from culture.federation.link import Link, Stage
from culture.federation.linkfacts import LinkFacts
from culture.federation.log import EventLog
from culture.federation.messages import Messages
from culture.federation.peer import Peer
from culture.federation.presence import Presence
from culture.federation.relay import Relay
from culture.federation.sharing import Sharing
from culture.federation.standing import Standing
from culture.federation.status import Status
from culture.federation.throttle import Throttle
from culture.federation.topology import Topology
from culture.federation.views import Views
from culture.protocol.message import Message
from culture.protocol.names import fold, short_name
from culture.protocol.numerics import Numeric
from culture.server.commands import command
from culture.server.context import Context
from culture.server.core.visibility import is_operator
from culture.server.errors import Refused
from culture.server.net.connection import ClientConnection
from culture.server.skill import Host, Skill

_LOOK = 1.0
_LINGER = 5.0
_AGAIN = 1.0  # seconds until the log is tried once more
_HOURLY = 3_600
GOING = "Server shutting down"
_NOT_OPEN = "What you say cannot be kept here at present"


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
        self.greeters: dict[Peer, None] = {}
        """Those that have not shown who they are."""
        self.known: dict[str, Known] = {}
        self.is_applying = False
        self.is_leaving = False
        """Is the server about to end? Then that its links do is no news."""
        self.topology = Topology(self.own)
        self.admission = Admission(self, host)
        self.presence = Presence(self, host)
        self.backfill = Backfill(self, host)
        self.relay = Relay(self, host)
        self.messages = Messages(self, host)
        self.courier = Courier(self, host)
        self.sharing = Sharing(self, host)
        self.dialler = Dialler(self, host)
        self.enrolment = Enrolment(self, host)
        self.closing: dict[ClientConnection, float] = {}
        """Connections that are being closed, and since when."""
        self.standing = Standing(self, host)
        self.status = Status(self, host)
        self.link_facts = LinkFacts(self, host)
        self.views = Views(self, host)
        self.throttle = Throttle(self, host)
        self.log = EventLog(host.folder / "log.db", self.backfill.settled, host.tell_operators, runtime=host.runtime)
        self.log.failed = host.failed
        self._epoch = host.ids.epoch
        self._is_told = False

    def places(self) -> Iterable[object]:
        """The objects whose hooks and verbs are the skill's."""
        return (self, self.relay, self.sharing, self.enrolment)

    async def start(self) -> None:
        """Open the log and begin to dial; a log that cannot be opened is tried again beside everything else."""
        self.loop = asyncio.get_running_loop()
        self.host.go_first(self.log.await_written, lambda: self.log.has_room)
        if not await self._begin():
            self.host.start(self._begin_later())

    async def _begin(self) -> bool:
        """Open the log and begin to dial; False where the disk is full, or the file is locked."""
        try:
            if not self.log.is_open:
                self.log.take_up(*await asyncio.to_thread(self.log.load, self._epoch, self.admission.caps))
            await self.messages.repeat()
        except (sqlite3.OperationalError, OSError) as error:
            self._note_trouble(error)
            return False
        except Exception:
            self.log.give_up()
            raise
        self.log.begin()
        self.host.start(self.messages.run())
        self.host.start(self.courier.run())
        self.standing.look()
        self.host.start(self._watch())
        return True

    async def _begin_later(self) -> None:
        """Try again until the log is open: until then there are no links, and nothing is confirmed as stored."""
        try:
            while True:
                await asyncio.sleep(_AGAIN)
                if await self._begin():
                    break
        except asyncio.CancelledError:
            if not self.is_leaving:  # the skill is switched off
                self.log.give_up()
            raise
        self.host.tell_operators(f"the log of the links is open, the links are made; {self.log.waiting} changes waited")

    def _note_trouble(self, error: Exception) -> None:
        if not self._is_told:
            self._is_told = True
            self.host.tell_operators(
                f"there are no links yet, since their log {self.host.folder / 'log.db'} cannot be opened: {error};"
                " messages are passed on here, and kept and told to peers later. Make room on the disk, or end what"
                " locks the file: it is tried again each second"
            )

    async def leave(self) -> None:
        """Take leave of the peers."""
        self.is_leaving = True
        await Farewell(self, self.host).say(GOING)

    async def stop(self) -> None:
        """Write what is left."""
        for peer in [*self.links.values(), *self.greeters]:
            peer.link.end(GOING)
        for connection in self.closing:
            connection.abort()
        self.log.is_kept = self.host.kept()
        await asyncio.to_thread(self.status.remove)
        await asyncio.to_thread(self.log.close, self.host.config.limits.shutdown_timeout / 2)

    async def _watch(self) -> None:
        """Ask peers that are silent whether they are there, and forget what is too old."""
        rounds = 0
        while True:
            await asyncio.sleep(_LOOK if self.settings.ping >= _LOOK else self.settings.ping / 2)
            with self.host.turn():
                self.standing.look()
                for peer in [*self.links.values(), *self.greeters]:
                    self._look_after(peer)
                self.presence.clear_up()
                self._reap()
                self.admission.forget_tries()
                figures = self.status.figures()
                if not self.is_leaving:
                    self.link_facts.look(figures)
            await self.status.write(figures)
            rounds += 1
            if rounds % 3600 == 1:
                await self._prune()

    async def _prune(self) -> None:
        try:
            await self.log.prune(self.host.now() - self.settings.keep)
        except (sqlite3.Error, OSError) as error:
            self.host.tell_operators(f"old messages stay in the log of the links for another hour: {error}")

    def _look_after(self, peer: Peer) -> None:
        silent = self.host.monotonic() - peer.connection.last_active
        if peer in self.greeters and self.host.runtime.now() - peer.since > self.settings.timeout:
            peer.link.end("No greeting")
        elif self.throttle.is_paused(peer):
            return
        elif silent > self.settings.timeout:
            peer.link.end(f"No answer for {self.settings.timeout:g} seconds")
        elif silent > self.settings.ping and not peer.asked and peer.link.stage is not Stage.GREETING:
            peer.asked = True
            peer.link.send(Message("PING", (self.own,)))

    def _reap(self) -> None:
        """A peer that does not close its side of a link that ended must not keep the connection."""
        now = self.host.monotonic()
        for connection, since in list(self.closing.items()):
            if not connection.is_open or now - since > _LINGER:
                connection.abort()
                del self.closing[connection]

    @command("SERVER", params=3, early=True)
    def server(self, ctx: Context, message: Message) -> None:
        """``SERVER name 1 :description``: from here on the connection is a link (RFC 2813 §4.1.2)."""
        session = ctx.session
        if session.user is not None:
            raise Refused(Numeric.ERR_ALREADYREGISTERED)
        if not self.log.is_open:
            session.close(_NOT_OPEN, _NOT_OPEN)
            return
        secret, certificate = session.password, session.tls.certificate if session.tls is not None else None
        peer = self.adopt(self.host.take(session), None)
        peer.address, peer.is_encrypted = session.host, session.tls is not None
        peer.certificate = lambda: certificate
        peer.connection.owner = peer
        try:
            peer.link.introduce(message.params[0], secret, message.params[-1])
        except Refusal as refusal:
            peer.link.end(str(refusal))

    @command("SQUIT", params=1)
    def squit(self, ctx: Context, message: Message) -> None:
        """``SQUIT server :reason``: end a link of this server (RFC 2812 §3.1.8); CONNECT makes it again."""
        name, reason = self._wanted(ctx, message.params[0]), "".join(message.params[1:2]) or "No reason given"
        peer = self.links.get(name)
        if peer is None:
            raise Refused(Numeric.ERR_NOSUCHSERVER, message.params[0], text="This server is not linked to that one")
        self.dialler.hold(name)
        peer.link.end(f"SQUIT by {ctx.nick}: {reason}")

    @command("CONNECT", params=1)
    def connect(self, ctx: Context, message: Message) -> None:
        """``CONNECT server``: make a configured link now (RFC 2812 §3.4.7)."""
        name = self._wanted(ctx, message.params[0])
        if name in self.links:
            text = f"{self.links[name].link.name} is linked already"
        elif self.dialler.connect(name):
            text = f"{self.dialler.wanted[name].name} is being dialled"
        else:
            text = f"{self.dialler.wanted[name].name} has no address here: it has to dial"
        ctx.send("NOTICE", ctx.nick, text)

    def _wanted(self, ctx: Context, given: str) -> str:
        """The link that an operator means."""
        if not is_operator(ctx.user):
            raise Refused(Numeric.ERR_NOPRIVILEGES)
        name = short_name(fold(given))
        if name not in self.dialler.wanted:
            raise Refused(Numeric.ERR_NOSUCHSERVER, given)
        return name

    def adopt(self, connection: ClientConnection, settings: LinkSettings | None) -> Peer:
        """A connection that is a link, or wants to be."""
        peer = Peer(self, connection, self.host.dirty, self.lost, settings, runtime=self.host.runtime)
        peer.after = self._after
        self.greeters[peer] = None
        return peer

    def _after(self, peer: Peer) -> None:
        """All lines of a read have been taken."""
        self.presence.clear_up()
        self.backfill.note_read(peer)
        self.throttle.note(peer)
        self.link_facts.heard(peer)

    def peer_of(self, link: Link) -> Peer:
        """Whose link it is."""
        return next(peer for peer in (*self.greeters, *self.links.values()) if peer.link is link)

    def lost(self, peer: Peer, reason: str) -> None:
        """A link is gone: so are those who can only be reached over it."""
        self.greeters.pop(peer, None)
        link = peer.link
        link.stage = Stage.CLOSED
        peer.decided.set()
        if peer.connection.is_open:
            self.closing.setdefault(peer.connection, self.host.monotonic())
        self.throttle.forget(peer)
        if self.links.get(link.peer) is peer:
            del self.links[link.peer]
            self.topology.direct.discard(link.peer)
            with self.host.turn():
                self._tell_of_loss(link, reason)
                self.presence.announce()
                self.presence.reckon()
        with self.host.turn():
            self.backfill.ended(link)
            self.messages.ended(link)
        self.dialler.again(link.peer)

    def _tell_of_loss(self, link: Link, reason: str) -> None:
        if self.is_leaving:
            return
        if not link.leaving:
            self.host.tell_operators(f"the link to {link.name} is lost: {reason}")
        else:
            self.host.tell_operators(f"{link.name} has left: {link.leaving}")
            self.dialler.problems[link.peer] = f"it has left: {link.leaving}"

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
