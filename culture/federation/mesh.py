"""The mesh as one server sees it: who is linked, what is told to whom, and who is gone when a link is."""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from culture.config.links import Federation
from culture.config.links import Link as LinkSettings
from culture.federation import registers
from culture.federation.codec import EVENTS, Garbled, decode, encode
from culture.federation.dialling import Dialler
from culture.federation.link import VERSION, Link, NotTheirs, Refusal, Stage
from culture.federation.log import Cursor, Entry, EventLog
from culture.federation.peer import Peer
from culture.federation.roster import Roster, burst, differences
from culture.federation.seal import Seal
from culture.federation.topology import LinkState, Topology
from culture.federation.trust import crosses_by_name, owner_of
from culture.protocol.message import Message
from culture.protocol.names import is_channel, short_name
from culture.protocol.numerics import Numeric
from culture.server.commands import command
from culture.server.compare import same_secret
from culture.server.context import Context
from culture.server.errors import Refused
from culture.server.events import (
    Arrived,
    Event,
    Invited,
    Kicked,
    Left,
    Linked,
    ModeSet,
    Parted,
    Redacted,
    Said,
    TopicSet,
    Unlinked,
    nick_of,
)
from culture.server.skill import Host, Skill, hook

log = logging.getLogger(__name__)

_AHEAD = 300.0  # seconds that a peer's clock may be ahead before its times are taken for wrong
_CHUNK = 500
_LOOK = 1.0
_MUCH = 1 << 20
_STEP = 0.01
_TRIES = 6_000


class Known:
    """What is known of another server's users: up to which of its events."""

    __slots__ = ("epoch", "name", "version")

    def __init__(self, name: str, epoch: str, version: int) -> None:
        self.name = name
        self.epoch = epoch
        self.version = version


class Mesh(Skill):
    """The links of this server."""

    name = "federation"
    Settings = Federation

    def __init__(self, host: Host, settings: Federation) -> None:
        super().__init__(host, settings)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.own = host.config.short_name
        self.links: dict[str, Peer] = {}
        """The peers that are linked, by the first label of their names."""
        self._greeting: set[Peer] = set()
        self.topology = Topology(self.own)
        self._known: dict[str, Known] = {}
        self._is_applying = False
        self._seal = Seal(host.folder / "seal.key")
        self.log = EventLog(host.folder / "log.db", self._settled, host.tell_operators)
        self._dialler = Dialler(self, host)
        self._owed: list[tuple[int, Link, str]] = []

    # Beginning and end

    async def start(self) -> None:
        """Open the log and begin to dial."""
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self.log.open)
        for link in self.host.config.links:
            self._dialler.want(link)
        self.host.start(self._watch())

    async def stop(self) -> None:
        """Say goodbye, and write what is left."""
        for peer in [*self.links.values(), *self._greeting]:
            peer.link.end("Server shutting down")
        await asyncio.to_thread(self.log.close, 5.0)

    async def _watch(self) -> None:
        """Ask peers that are silent whether they are there, and forget what is too old."""
        rounds = 0
        while True:
            await asyncio.sleep(_LOOK if self.settings.ping >= _LOOK else self.settings.ping / 2)
            with self.host.turn():
                for peer in [*self.links.values(), *self._greeting]:
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

    # Greeting

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

    def adopt(self, connection: Any, settings: LinkSettings | None) -> Peer:
        """A connection that is a link, or wants to be."""
        peer = Peer(self, connection, self.host.dirty, self.lost, settings)
        peer.after = self._note_read
        self._greeting.add(peer)
        return peer

    def greeting(self, settings: LinkSettings) -> tuple[Message, Message]:
        """Our PASS and SERVER."""
        config = self.host.config
        return (
            Message("PASS", (settings.secret,)),
            Message("SERVER", (config.name, "1", config.description)),
        )

    def admit(self, link: Link, name: str, secret: str, description: str) -> LinkSettings:
        """Who the peer is; raises Refusal, which does not tell a stranger more than that."""
        settings = self._dialler.wanted.get(short_name(name))
        peer = self._peer_of(link)
        if settings is None or settings.name != name or not _is_secret(secret, settings):
            log.warning("a link of %s is refused: unknown name or wrong secret", name)
            raise Refusal("Bad name or secret")
        if settings.fingerprint is not None and not same_secret(peer.certificate() or "", settings.fingerprint):
            log.warning("a link of %s is refused: not its certificate", name)
            raise Refusal("Bad certificate")
        if link.is_dialled and link.settings is not None and link.settings.name != name:
            raise Refusal(f"{link.settings.name} was dialled")
        if short_name(name) == self.own:
            raise Refusal("A server is not linked to itself")
        self._replace(short_name(name), peer)
        return settings

    def _replace(self, name: str, peer: Peer) -> None:
        """Where both sides dial at once, both keep the link that the lesser name dialled; a dead one gives way."""
        present = self.links.get(name)
        if present is None:
            return
        ours_first = self.own < name
        keeps = present.link.is_dialled == ours_first
        if present.link.is_dialled != peer.link.is_dialled and keeps and self._is_alive(present):
            raise Refusal(f"{name} is linked already")
        present.link.end("Replaced by a new link")

    def _is_alive(self, peer: Peer) -> bool:
        return bool(self.host.monotonic() - peer.connection.last_active < self.settings.ping)

    def _peer_of(self, link: Link) -> Peer:
        return next(peer for peer in (*self._greeting, *self.links.values()) if peer.link is link)

    def linked(self, link: Link) -> None:
        """Both sides have shown who they are: say how far each log was read; what we know follows."""
        peer = self._peer_of(link)
        self._greeting.discard(peer)
        self.links[link.peer] = peer
        cursor = self.log.cursors.get(link.peer, Cursor("*", 0))
        link.send(
            Message("LINK", (str(VERSION), self.log.id, str(self.log.survived), cursor.log, str(cursor.position)))
        )
        log.info("linked to %s", link.name)

    def resumed(self, link: Link, version: int, words: tuple[str, ...]) -> None:
        """The peer is ready: tell it everybody we know, then the messages it has missed."""
        theirs, survived, ours, position = words[:4]
        link.log = theirs
        known = self.log.cursors.get(link.peer)
        link.read = known.position if known is not None and known.log == theirs else 0
        link.sent = int(position) if ours == self.log.id else 0
        self.topology.direct.add(link.peer)
        self.topology.take(link.peer, LinkState(0, frozenset({self.own}), link.name, link.description))
        for line in self._burst(link):
            link.send(line)
        link.send(Message("EOB", (), self.own))
        self._announce()
        self._reckon()
        self.host.start(self._backfill(link, int(survived)))

    def _burst(self, link: Link) -> Iterator[Message]:
        network = self.host.network
        yield self._own_state()
        for server, state in self.topology.states.items():
            if server != link.peer and state.version:
                yield _state_line(server, state)
        yield from self._roster_lines(self.own, link)
        for server in self._known:
            if server != link.peer:
                yield from self._roster_lines(server, link)
        yield from registers.burst(network, self.own, link.trust)

    def _roster_lines(self, server: str, link: Link) -> Iterator[Message]:
        ids, name = self.host.ids, self.host.config.name
        if server == self.own:
            return burst(self.host.network, server, name, ids.epoch, ids.last, link.trust)
        known = self._known[server]
        return burst(self.host.network, server, known.name, known.epoch, known.version, link.trust)

    async def _backfill(self, link: Link, survived: int) -> None:
        """What the peer sent us and may have lost, then what it has not read of our log, then a marker."""
        for entry in await self.log.from_peer(link.peer, survived):
            self._tell_entry(link, entry)
        lost = await self.log.missing(link.sent) if link.sent else 0
        if lost:
            link.send(Message("GAP", (str(lost),), self.own))
        while link.stage is Stage.SYNCING:
            entries = await self.log.after(link.sent, _CHUNK)
            with self.host.turn():
                for entry in entries:
                    self._tell_entry(link, entry)
                if len(entries) < _CHUNK and self._go_live(link):
                    return
            await self._drained(link)

    def _go_live(self, link: Link) -> bool:
        """Tell what is not on disk yet as well; from here on everything is told at once."""
        recent = self.log.recent
        if recent and recent[0].position > link.sent + 1 and len(recent) == recent.maxlen:
            return False
        for entry in list(recent):
            if entry.position > link.sent:
                self._tell_entry(link, entry)
        link.sent = max(link.sent, self.log.position)
        link.stage = Stage.LIVE
        link.send(Message("EOBACKFILL", (str(link.sent),), self.own))
        self._forward_held()
        return True

    async def _drained(self, link: Link) -> None:
        """Wait while much is on its way to the peer."""
        peer = self.links.get(link.peer)
        for _ in range(_TRIES):
            if peer is None or not peer.connection.is_open or peer.connection.waiting <= _MUCH:
                return
            await asyncio.sleep(_STEP)

    def _tell_entry(self, link: Link, entry: Entry) -> None:
        link.sent = max(link.sent, entry.position)
        if entry.channel and crosses_by_name(self.host.network, entry.channel, link.trust):
            link.send_bytes(_numbered(entry.position, entry.data))

    # Who is there

    def _own_state(self) -> Message:
        stamp, config = self.host.stamp(), self.host.config
        state = LinkState(stamp.seq, frozenset(self.topology.direct), config.name, config.description)
        return _state_line(self.own, state, stamp.epoch)

    def _announce(self) -> None:
        """Tell everybody who we are linked to."""
        line = self._own_state()
        for peer in self._live():
            peer.link.send(line)

    def link_state(self, link: Link, line: Message) -> None:
        """What a server says of its links; passed on when it is news."""
        name, version, description = line.params
        server = short_name(name)
        self._check_origin(link, server)
        peers = frozenset(each for each in line.tags.get("peers", "").split(",") if each)
        if self.topology.take(server, LinkState(int(version), peers, name, description)):
            self._pass_on(line, link)
            self._reckon()

    def _reckon(self) -> None:
        """Who can be reached, after a change; who cannot any more is split off."""
        ways = self.topology.ways()
        network = self.host.network
        with self._applying():
            for server in [server for server in network.servers if server not in ways]:
                self._split(server)
            for server, way in ways.items():
                state = self.topology.states.get(server)
                if state is None:
                    continue
                known = network.servers.get(server)
                if known is None or (known.hops, known.via) != way:
                    self.host.publish(Linked(self.host.stamp(), state.name, state.description, way.hops, way.via))
                if server not in self._known and way.via in self.links and way.hops > 1:
                    self.links[way.via].link.send(Message("WANT", (server,), self.own))
        self._forward_held()

    def _split(self, server: str) -> None:
        name = self.host.network.servers[server].name
        reason = f"{self.host.config.name} {name}"
        for user in [user for user in self.host.network.users.values() if owner_of(user.nick) == server]:
            self.host.publish(Left(self.host.stamp(), user.source, reason))
        self.host.publish(Unlinked(self.host.stamp(), name))
        self._known.pop(server, None)
        log.info("%s cannot be reached any more", name)

    def roster(self, link: Link, roster: Roster) -> None:
        """The users of a server, as of a version; passed on when it is news."""
        self._check_origin(link, roster.server)
        known = self._known.get(roster.server)
        if known is not None and known.epoch == roster.epoch and known.version >= roster.version:
            return
        if roster.server == self.own:
            return
        self._known[roster.server] = Known(roster.name, roster.epoch, roster.version)
        with self._applying():
            for event in differences(self.host, roster, f"{self.host.config.name} {roster.name}"):
                self.host.publish(event)
        for peer in self._others(link):
            for line in self._roster_lines(roster.server, peer.link):
                peer.link.send(line)

    def wanted(self, link: Link, server: str) -> None:
        """The peer has no users of a server that it can reach through us."""
        if server in self._known or server == self.own:
            for line in self._roster_lines(server, link):
                link.send(line)

    def channel(self, link: Link, line: Message) -> None:
        """What a channel is set to on the other side."""
        if not crosses_by_name(self.host.network, line.params[0], link.trust):
            return
        before = self.host.network.channel(line.params[0])
        clock = dict(before.marks) if before is not None else None
        with self._applying():
            for event in registers.merge(self.host, line, bool(clock)):
                self.host.publish(event)
        after = self.host.network.channel(line.params[0])
        if after is not None and after.marks != (clock or {}):
            for peer in self._others(link):
                if crosses_by_name(self.host.network, after.name, peer.link.trust):
                    peer.link.send(registers.line_of(after, self.own))

    def lost(self, peer: Peer, reason: str) -> None:
        """A link is gone: so are those who can only be reached over it."""
        self._greeting.discard(peer)
        link = peer.link
        link.stage = Stage.CLOSED
        if self.links.get(link.peer) is peer:
            del self.links[link.peer]
            self.topology.direct.discard(link.peer)
            self._owed = [owed for owed in self._owed if owed[1] is not link]
            with self.host.turn():
                self.host.tell_operators(f"the link to {link.name} is lost: {reason}")
                self._announce()
                self._reckon()
        self._dialler.again(link.peer)

    # What happens

    @hook(*EVENTS)
    def happened(self, event: Event) -> None:
        """Something happened here: tell the others."""
        if self._is_applying or event.id.origin != self.own:
            return
        line = encode(event)
        if isinstance(event, Said | Redacted) and not is_channel(event.target):
            self._send_private(event, line)
        elif isinstance(event, Invited):
            self._route(line, owner_of(event.nick))
        elif isinstance(event, Said | Redacted):
            data = str(line)
            sealed = f"@seal={self._seal.of(data)};{data[1:]}"
            self._keep(event, sealed, None, None)
        else:
            self._tell_state(event, line, None)

    def _keep(self, event: Said | Redacted, data: str, link: Link | None, theirs: int | None) -> None:
        """A message that is new here: into the log, and on to the others."""
        channel = event.target
        position = self.log.append(event.id, channel, data, link.peer if link is not None else None, theirs)
        line = _numbered(position, data)
        for peer in self._others(link):
            other = peer.link
            if other.stage is Stage.LIVE:
                other.sent = position
                if crosses_by_name(self.host.network, channel, other.trust):
                    other.send_bytes(line)

    def _tell_state(self, event: Event, line: Message, link: Link | None) -> None:
        name = getattr(event, "channel", None) or getattr(event, "target", "")
        channel = self.host.network.channel(name) if isinstance(name, str) and is_channel(name) else None
        if channel is not None and isinstance(event, ModeSet | TopicSet):
            line = line._replace(tags={**line.tags, "v": str(channel.clock)})
        for peer in self._others(link):
            if not (isinstance(name, str) and is_channel(name)) or crosses_by_name(
                self.host.network, name, peer.link.trust
            ):
                peer.link.send(line)

    def event(self, link: Link, line: Message) -> None:
        """Something happened elsewhere."""
        event = decode(line)
        server = event.id.origin
        if isinstance(event, Said | Redacted):
            if is_channel(event.target):
                self._heard(link, line, event)
            else:
                self._private(link, line, event)
            return
        if isinstance(event, Invited) and owner_of(event.nick) != self.own:
            self._route(line, owner_of(event.nick))
            return
        self._check_origin(link, server)
        known = self._known.get(server)
        if isinstance(event, Invited):
            self._apply(event, None)
        elif known is not None and not (known.epoch == event.id.epoch and known.version >= event.id.seq):
            self._check_source(event)
            known.epoch, known.version = event.id.epoch, event.id.seq
            self._change(link, line, event)

    def _change(self, link: Link, line: Message, event: Event) -> None:
        version = int(line.tags["v"]) if "v" in line.tags else None
        name = getattr(event, "channel", None)
        if isinstance(name, str) and not crosses_by_name(self.host.network, name, link.trust):
            return
        if isinstance(event, ModeSet):
            fresh = registers.effective(self.host.network, event, version or 0)
            if fresh is not None:
                self._apply(fresh, version)
        elif not isinstance(event, TopicSet) or registers.is_newest_topic(self.host.network, event, version or 0):
            self._apply(event, version)
        for peer in self._others(link):
            if not isinstance(name, str) or crosses_by_name(self.host.network, name, peer.link.trust):
                peer.link.send(line)
        if isinstance(event, Kicked) and owner_of(event.nick) == self.own:
            # Whoever heard of it in another order than we did learns how it ended.
            user = self.host.network.user(event.nick)
            if user is not None:
                gone = Parted(self.host.stamp(), user.source, event.channel)
                self._tell_state(gone, encode(gone), None)

    def _apply(self, event: Event, version: int | None) -> None:
        network = self.host.network
        network.version = version
        try:
            with self._applying():
                self.host.publish(event)
        finally:
            network.version = None

    def _heard(self, link: Link, line: Message, event: Said | Redacted) -> None:
        number = line.tags.get("n")
        theirs = int(number) if number is not None else None
        if theirs is not None:
            link.read = max(link.read, theirs)
        stamp = event.id
        if self.log.seen.knows(stamp.origin, stamp.epoch, stamp.seq):
            return
        if not crosses_by_name(self.host.network, event.target, link.trust):
            return
        data = str(line._replace(tags={key: value for key, value in line.tags.items() if key != "n"}))
        if stamp.origin == self.own:
            self._check_seal(line)
        else:
            self._check_origin(link, stamp.origin)
        self._check_source(event)
        event = self._clamped(link, event)
        self._keep(event, data, link, theirs)
        self._apply(event, None)

    def _check_seal(self, line: Message) -> None:
        bare = str(line._replace(tags={key: value for key, value in line.tags.items() if key not in ("n", "seal")}))
        if not self._seal.fits(bare, line.tags.get("seal", "")):
            raise Garbled("a message of ours without our seal")

    def _clamped(self, link: Link, event: Any) -> Any:
        """A time that is far ahead is that of a wrong clock: the message arrives now."""
        now = self.host.now()
        if event.id.at > now + _AHEAD:
            self.host.tell_operators(f"the clock of {event.id.origin} is {event.id.at - now:.0f} s ahead")
            return event._replace(id=event.id._replace(at=now))
        return event

    def _check_origin(self, link: Link, server: str) -> None:
        """A peer does not speak for us, nor for a server that is linked to us itself."""
        if server == self.own or (server != link.peer and server in self.links):
            raise NotTheirs

    def _check_source(self, event: Event) -> None:
        """What a server says was done, its own users did, or the server itself."""
        source = event.nick if isinstance(event, Arrived) else nick_of(event.source)  # type: ignore[union-attr]
        if owner_of(source) != event.id.origin and short_name(source) != event.id.origin:
            raise Garbled(f"{source} is no user of {event.id.origin}")

    # Private messages

    def _send_private(self, event: Said | Redacted, line: Message) -> None:
        server = owner_of(event.target)
        if server != self.own:
            self.log.hold(event.id.msgid, server, str(line))
            self._forward_held()

    def _forward_held(self) -> None:
        """Send on what is held, each once over the link that leads to its server now."""
        if not self.log.held:
            return
        ways = self.host.network.servers
        for held in list(self.log.held.values()):
            way = ways.get(held.server)
            peer = self.links.get(way.via) if way is not None else None
            if peer is not None and peer.link.stage is Stage.LIVE and held.id not in peer.link.told:
                peer.link.told.add(held.id)
                peer.link.send_bytes(f"{held.data}\r\n".encode())

    def _private(self, link: Link, line: Message, event: Said | Redacted) -> None:
        id, server = event.id.msgid, owner_of(event.target)
        self._check_source(event)
        if server != self.own:
            if id not in self.log.held:
                self.log.hold(id, server, str(line))
                self._forward_held()
        elif not self.log.seen.knows(event.id.origin, event.id.epoch, event.id.seq):
            if event.id.origin == self.own:
                raise Garbled("a private message of ours")
            self.log.append(event.id, "", "")
            self._apply(self._clamped(link, event), None)
        self._owed.append((self.log.ordered(), link, id))

    def custody(self, link: Link, id: str) -> None:
        """The next server has it."""
        link.told.discard(id)
        self.log.release(id)

    def _route(self, line: Message, server: str) -> None:
        way = self.host.network.servers.get(server)
        if way is not None and way.via in self.links:
            self.links[way.via].link.send(line)

    # Acknowledging

    def _note_read(self, peer: Peer) -> None:
        link = peer.link
        cursor = self.log.cursors.get(link.peer)
        if link.log and link.read and (cursor is None or cursor != (link.log, link.read)):
            self.log.read_up_to(link.peer, Cursor(link.log, link.read))

    def _settled(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._acknowledge)

    def _acknowledge(self) -> None:
        with self.host.turn():
            for name, peer in self.links.items():
                durable = self.log.durable.get(name)
                if durable is not None and durable.log == peer.link.log and durable.position > peer.link.confirmed:
                    peer.link.confirmed = durable.position
                    peer.link.send(Message("ACK", (str(durable.position),)))
            done = self.log.written
            ready = [owed for owed in self._owed if owed[0] <= done]
            self._owed = [owed for owed in self._owed if owed[0] > done]
            for _, link, id in ready:
                if link.stage is not Stage.CLOSED:
                    link.send(Message("CUSTODY", (id,)))

    def acknowledged(self, link: Link, position: int) -> None:
        """The peer has everything up to here on disk."""
        link.acked = max(link.acked, position)

    def gap(self, link: Link, lost: int) -> None:
        """Messages that no peer keeps any more: said, not hidden."""
        self.host.tell_operators(f"{lost} messages from {link.name} are lost: it does not keep them any more")

    # Telling

    def _live(self) -> Iterable[Peer]:
        return [
            peer for peer in self.links.values() if peer.link.stage in (Stage.SYNCING, Stage.LIVE) and peer.link.log
        ]

    def _others(self, link: Link | None) -> Iterable[Peer]:
        return [peer for peer in self._live() if peer.link is not link]

    def _pass_on(self, line: Message, link: Link) -> None:
        for peer in self._others(link):
            peer.link.send(line)

    @contextmanager
    def _applying(self) -> Iterator[None]:
        """What is published in here was not done here."""
        before, self._is_applying = self._is_applying, True
        try:
            yield
        finally:
            self._is_applying = before


def _is_secret(given: str, settings: LinkSettings) -> bool:
    old = settings.old_secret
    return bool(same_secret(given, settings.secret)) | (old is not None and same_secret(given, old))


def _state_line(server: str, state: LinkState, epoch: str = "") -> Message:
    tags = {"peers": ",".join(sorted(state.peers))} if state.peers else {}
    return Message("LINKSTATE", (state.name, str(state.version), state.description), server, tags)


def _numbered(position: int, data: str) -> bytes:
    return f"@n={position};{data[1:]}\r\n".encode()
