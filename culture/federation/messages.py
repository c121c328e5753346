"""Messages to channels: kept in the log, passed on, and shown here, each once."""

import asyncio
import logging
from typing import TYPE_CHECKING

from culture.federation.backfill import may_be_told, numbered
from culture.federation.belief import believed, believed_plain
from culture.federation.codec import decode
from culture.federation.codec.fields import Garbled, number
from culture.federation.codec.messages import OPEN_TAG, with_door
from culture.federation.doubts import Doubts
from culture.federation.link import Link, Stage
from culture.federation.logfile import Entry
from culture.federation.plain import Plain
from culture.federation.seal import Seal
from culture.federation.trust import (
    UNVOUCHED_TAG,
    NotTheirs,
    check_origin,
    crosses_by_name,
    for_whom,
    is_vouched,
    owner_of,
    unvouched,
)
from culture.protocol.mentions import may_mention, mentions
from culture.protocol.message import Message, ProtocolError
from culture.server.core.ids import MICROSECONDS, EventId
from culture.server.core.state import reaches
from culture.server.events import Noted, Receipted, Redacted, Said, ToldOpen
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

log = logging.getLogger(__name__)

Kept = Said | Redacted | Noted | Receipted
"""What is kept until the others have it: for channels and for the ledger in the log, for one user by the courier."""

_AHEAD = 300.0  # seconds that a peer's clock may be ahead before its times are taken for wrong
_GOT_TAG = "got"
"""On a message whose time was taken for wrong: when it arrived where that was noticed. It is as of then everywhere."""
_NOT_SEALED = frozenset({"n", "seal", _GOT_TAG, UNVOUCHED_TAG, OPEN_TAG})
_MOST_TAKEN_BACK = 10_000
_REPEATED = 10_000  # that are read and told again at once
_SOON = 1.0
_SAFE = 60.0  # seconds between two notes of what is on every disk here
_STEP = 0.01
_AT_ONCE = 500
_LIVE = Stage.LIVE  # an enum's member takes its time to be looked up


class Messages:
    """Takes them from here and from peers."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self._network = host.network
        self._seal = Seal(host.folder / "seal.key", runtime=host.runtime)
        self._doubts = Doubts(2 * mesh.settings.timeout)
        self._taken_back: dict[str, None] = {}
        """The last messages that were taken back: some of them before they came."""
        self._ahead: set[str] = set()
        """Servers whose clock is known to be wrong."""
        self._is_repeated = False
        """Was everything told again that a crash may have kept from those who keep messages?"""

    def said(self, event: Kept, data: str) -> None:
        """Somebody here said something to a channel; ``data`` is its line."""
        if isinstance(event, Redacted):
            self.take_back(event)
        channel = self._network.channel(event.target)
        if channel is not None and channel.shared is not None:
            data = str(for_whom(self._network, event.target, Message.parse(data)))
        data = self.sealed(data)
        if isinstance(event, Said):
            data = with_door(data, channel is None or not channel.is_open)
        self._keep(event, data, None)

    def _keep(self, event: Kept, data: str, link: Link | None) -> None:
        """A message that is new here: into the log, and on to the others."""
        mesh, network, channel, line = self._mesh, self._network, event.target, b""
        if self._taken_back and self.is_taken_back(event.id.msgid):
            mesh.log.append(event.id, channel, "")  # known from now on, and told to nobody
            return
        position = mesh.log.append(event.id, channel, data)
        for peer in mesh.links.values():
            other = peer.link
            if other is not link and other.stage is _LIVE and not mesh.backfill.fell_behind(peer):
                other.sent = position
                if may_be_told(network, other, channel, data):
                    line = line or numbered(position, data)
                    other.send_bytes(line)

    def heard_plain(self, link: Link, said: Plain) -> None:
        """The same for a message in its commonest form, on which it depends how much a link can carry."""
        position, data, event = said
        origin, epoch, seq, at = event.id
        mesh, network = self._mesh, self._network
        is_unusual = origin != link.peer or at > self._host.now() + _AHEAD or origin in self._ahead
        if is_unusual or mesh.log.is_full or link.stage is not _LIVE:
            self.heard(link, Message.parse(f"@n={position};{data[1:]}"), event)
            return
        if position > link.read:
            link.read = position
        trust = link.trust
        if mesh.log.seen.knows(origin, epoch, seq):
            self._mend_closed(link, event)
            return
        if not crosses_by_name(network, event.target, trust):
            return
        if not is_vouched(network, trust, origin):
            self.heard(link, Message.parse(f"@n={position};{data[1:]}"), event)
            return
        mesh.log.seen.check_room(origin, epoch)
        shown: Kept = believed_plain(network, event)
        if may_mention(event.text):
            shown = self._fresh(self._calling(shown))
        self._keep(event, data, link)
        self._doubts.resolve(event.id)
        if not self._taken_back or not self.is_taken_back(event.id.msgid):
            self._host.publish(shown)

    def heard(self, link: Link, line: Message, event: Kept) -> None:
        """A peer tells of a message; what it may not say, or not yet, is passed over."""
        stamp, position = event.id, _position(line)
        if position is not None:
            link.read = max(link.read, position)
            self._mesh.backfill.note_shared(link, stamp.msgid)
        if self._mesh.log.seen.knows(stamp.origin, stamp.epoch, stamp.seq):
            self._mend_closed(link, event)
            return
        if not crosses_by_name(self._network, event.target, link.trust):
            return
        if self._mesh.log.is_full:
            link.end("What you say cannot be kept here at present")
        elif self._may_say(link, line, event):
            try:
                self._take(link, line, event)
            except Garbled as error:
                if stamp.origin == link.peer:
                    raise
                # It would come again with every new link to a peer that is not to blame.
                link.warn("passes on %s, which is none: %s", stamp.msgid, error)

    def _mend_closed(self, link: Link, event: Kept) -> None:
        """A known message, told again by its own server, which says now that it was said in the open.

        An older version did not say so, and where the channel was unknown the message was kept as closed.
        """
        if isinstance(event, Said) and event.closed is False and event.id.origin == link.peer:
            self._host.repeat(ToldOpen(event.id, event.target))

    def _may_say(self, link: Link, line: Message, event: Kept) -> bool:
        if event.id.origin == self._mesh.own:
            if self.is_sealed(line):
                return True
            link.warn("tells of %s, which is not under our seal", event.id.msgid)
            return False
        return not self.is_doubtful(link, line, event)

    def is_doubtful(self, link: Link, line: Message, event: Kept) -> bool:
        """Is it for somebody else to say? Then it is kept aside, and looked at again when a link is lost."""
        try:
            check_origin(self._mesh, link, event.id.origin)
        except NotTheirs:
            if not self._doubts.note(link, line, event.id, _position(line), self._host.monotonic()):
                link.end("More is in doubt of what you tell than can be remembered")
            return True
        return False

    def sealed(self, data: str) -> str:
        """A line of ours, so that we know it again."""
        return f"@seal={self._seal.of(data)};{data[1:]}"

    def told_before(self, stamp: EventId) -> list[Link]:
        """Who told a message, that is known now, while it was in doubt."""
        return self._doubts.resolve(stamp)

    def is_sealed(self, line: Message) -> bool:
        """Is it a line of ours?"""
        return self._seal.fits(str(_without(line, _NOT_SEALED)), line.tags.get("seal", ""))

    def _take(self, link: Link, line: Message, event: Kept) -> None:
        position = line.tags.get("n")
        if event.id.origin != self._mesh.own:
            self._mesh.log.seen.check_room(event.id.origin, event.id.epoch)
        line, event = self.timed(line, event)
        line = _without(line, frozenset("n"))
        data, vouched = str(line), self._is_vouched(link, line, event)
        shown = self._as_shown(event, vouched)
        # Who asks whether we said this is told so as well.
        is_question = event.id.origin == self._mesh.own and position is None
        self._keep(event, data if vouched else unvouched(data), None if is_question else link)
        self._doubts.resolve(event.id)
        if shown is not None and not self.is_taken_back(event.id.msgid):
            if isinstance(shown, Redacted):
                self.take_back(shown)
            self._mesh.relay.apply(self._fresh(self._calling(shown)), None)

    def _is_vouched(self, link: Link, line: Message, event: Kept) -> bool:
        origin = event.id.origin
        return origin == self._mesh.own or is_vouched(self._network, link.trust, origin, line)

    def _as_shown(self, event: Kept, vouched: bool) -> Kept | None:
        """What of it happens here, as far as its server is believed."""
        if event.id.origin == self._mesh.own:
            return event
        shown = believed(self._network, event, vouched)
        return shown if isinstance(shown, Kept) else None

    def _calling(self, event: Kept) -> Kept:
        """With those here whom it calls while the server where it was said did not know of them."""
        if not isinstance(event, Said) or event.verb != "PRIVMSG" or not may_mention(event.text):
            return event
        channel = self._network.channel(event.target)
        if channel is None:
            return event
        members = channel.members.items()
        hearers = (member.nick for member, held in members if not event.status or reaches(held, event.status))
        called = [nick for nick in mentions(event.text, hearers) if owner_of(nick) == self._mesh.own]
        return event._replace(mentions=tuple(dict.fromkeys((*event.mentions, *called)))) if called else event

    def _fresh(self, event: Kept) -> Kept:
        """What was said long ago calls nobody."""
        if isinstance(event, Said) and event.mentions and event.id.at < self._host.now() - self._mesh.settings.stale:
            return event._replace(mentions=())
        return event

    def take_back(self, event: Redacted) -> None:
        """Let go of a message, whether it has come or not; peers that missed it are told only that it is gone."""
        self._taken_back[event.msgid] = None
        if len(self._taken_back) > _MOST_TAKEN_BACK:
            del self._taken_back[next(iter(self._taken_back))]
        if event.msgid.startswith(f"{self._mesh.own}."):
            self._mesh.log.blank(event.msgid)  # nobody else says which ids of ours are used
        else:
            self._mesh.log.take_back(event.msgid, event.target, event.id.at)

    def is_taken_back(self, msgid: str) -> bool:
        """Was it taken back a while ago? Then nobody is to see it, also where it comes only now."""
        return msgid in self._taken_back

    def timed(self, line: Message, event: Kept) -> tuple[Message, Kept]:
        """A time that is far ahead is that of a wrong clock: then it counts when the message arrived."""
        now, origin = self._host.now(), event.id.origin
        got = line.tags.get(_GOT_TAG)
        if got is not None:
            at = number(got) / MICROSECONDS
            return line, event._replace(id=event.id._replace(at=min(at, now + _AHEAD)))
        if event.id.at <= now + _AHEAD:
            self._ahead.discard(origin)
            return line, event
        if origin not in self._ahead:
            self._ahead.add(origin)
            self._host.tell_operators(f"the clock of {origin} is {event.id.at - now:.0f} s ahead")
        line = line._replace(tags={**line.tags, _GOT_TAG: str(round(now * MICROSECONDS))})
        return line, event._replace(id=event.id._replace(at=round(now * MICROSECONDS) / MICROSECONDS))

    def read(self, link: Link) -> int:
        """How far a peer's log is read: up to what is in doubt."""
        doubtful = self._doubts.first(link)
        return link.read if doubtful is None else min(link.read, doubtful - 1)

    def ended(self, link: Link) -> None:
        """A link is gone: what others said of whom it led to is looked at again."""
        self._doubts.forget(link)
        if not link.log:
            return  # it led nowhere yet
        for other, line in self._doubts.take():
            if other.stage is not Stage.CLOSED:
                other.receive(line)

    async def run(self) -> None:
        """Ask about what is in doubt, and note what is safe from a crash: it is with all here who keep messages."""
        position, since, is_kept = self._mesh.log.position, self._host.monotonic(), self._host.kept()
        while True:
            await asyncio.sleep(_SOON)
            now = self._host.monotonic()
            with self._host.turn():
                self.ask_owners(now - _SOON)
            if now - since > _SAFE and self._is_repeated and is_kept():
                self._mesh.log.settle(position)
                position, since, is_kept = self._mesh.log.position, now, self._host.kept()

    def ask_owners(self, before: float) -> None:
        """Show what has been in doubt since then to the server that is said to have said it.

        It may have lost it in a crash, and knows it again by its seal; then it tells it anew.
        """
        self._doubts.expire(self._host.monotonic())
        linked = {name for name, peer in self._mesh.links.items() if peer.link.stage is _LIVE}
        for server, line in self._doubts.overdue(before, linked):
            peer = self._mesh.links.get(server)
            if peer is not None and peer.link.log:
                peer.link.send(_without(line, frozenset("n")))

    async def repeat(self) -> None:
        """Tell those here who keep messages what a crash may have kept from them.

        Nothing new can come before this returns, unless the log could not be opened at the start. So they keep it as
        having come earlier: whoever has seen the last of it is not to miss what comes next.
        """
        entries = await self._mesh.log.since(self._mesh.log.settled, _REPEATED)
        for entry in entries:
            self._repeat(entry)
        self._is_repeated = len(entries) < _REPEATED
        if not self._is_repeated:
            self._host.start(self._repeat_rest(entries[-1].position, self._mesh.log.committed))

    async def _repeat_rest(self, position: int, until: int) -> None:
        """The same for what is more than can wait at once, no faster than they keep it."""
        while position < until and (entries := await self._mesh.log.since(position, _REPEATED)):
            position = entries[-1].position
            for start in range(0, len(entries), _AT_ONCE):
                await self._kept()
                for entry in entries[start : start + _AT_ONCE]:
                    self._repeat(entry)
        self._is_repeated = True

    async def _kept(self) -> None:
        is_kept = self._host.kept()
        await asyncio.sleep(0)
        while not is_kept():  # noqa: ASYNC110
            await asyncio.sleep(_STEP)

    def _repeat(self, entry: Entry) -> None:
        try:
            line = Message.parse(entry.data)
            line, event = self.timed(line, _message(line))
            shown = self._as_shown(event, UNVOUCHED_TAG not in line.tags)
        except (ProtocolError, ValueError):
            return
        if shown is not None and not self.is_taken_back(shown.id.msgid):
            self._host.repeat(shown)


def _message(line: Message) -> Kept:
    event = decode(line)
    if not isinstance(event, Kept):
        raise Garbled(f"{line.verb} is no message")
    return event


def _position(line: Message) -> int | None:
    """The position in the peer's log."""
    said = line.tags.get("n")
    return None if said is None else number(said)


def _without(line: Message, tags: frozenset[str]) -> Message:
    return line._replace(tags={key: value for key, value in line.tags.items() if key not in tags})
