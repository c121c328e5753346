"""What happens here is told to the others, and what happens there happens here."""

from typing import TYPE_CHECKING, Any

from culture.federation import registers
from culture.federation.backfill import numbered
from culture.federation.belief import believed
from culture.federation.codec import EVENTS, Garbled, decode, encode
from culture.federation.link import Link, Stage
from culture.federation.seal import Seal
from culture.federation.trust import (
    UNVOUCHED_TAG,
    check_origin,
    crosses_by_name,
    for_whom,
    is_local,
    is_vouched,
    message_crosses,
    owner_of,
    unvouched,
)
from culture.protocol.message import Message
from culture.protocol.names import is_channel
from culture.server.events import Event, Invited, Kicked, Parted, Redacted, Said
from culture.server.skill import Host, hook

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

_AHEAD = 300.0  # seconds that a peer's clock may be ahead before its times are taken for wrong


class Relay:
    """Passes events on, each once to everybody who may know of it."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self._seal = Seal(host.folder / "seal.key")

    @hook(*EVENTS)
    def happened(self, event: Event) -> None:
        """Something happened here: tell the others."""
        if self._mesh.is_applying or event.id.origin != self._mesh.own:
            return
        line = encode(event)
        if isinstance(event, Said | Redacted) and is_local(self._host.network, event.target):
            return
        if isinstance(event, Said | Redacted) and not is_channel(event.target):
            self._mesh.courier.send(event, line)
        elif isinstance(event, Invited):
            self._mesh.courier.route(line, owner_of(event.nick))
        elif isinstance(event, Said | Redacted):
            data = str(for_whom(self._host.network, event.target, line))
            sealed = f"@seal={self._seal.of(data)};{data[1:]}"
            self._keep(event, sealed, None, None)
        else:
            self.tell_state(event, line, None)

    def _keep(self, event: Said | Redacted, data: str, link: Link | None, theirs: int | None) -> None:
        """A message that is new here: into the log, and on to the others."""
        channel = event.target
        position = self._mesh.log.append(event.id, channel, data, link.peer if link is not None else None, theirs)
        line = numbered(position, data)
        for peer in self._mesh.others(link):
            other = peer.link
            if other.stage is Stage.LIVE:
                other.sent = position
                if message_crosses(self._host.network, channel, data, other.trust):
                    other.send_bytes(line)

    def tell_state(self, event: Event, line: Message, link: Link | None) -> None:
        """Tell the others of something that is not kept in the log."""
        name = getattr(event, "channel", None) or getattr(event, "target", "")
        line = line._replace(tags={**line.tags, **registers.tags_of(self._host.network, event)})
        for peer in self._mesh.others(link):
            if not (isinstance(name, str) and is_channel(name)) or crosses_by_name(
                self._host.network, name, peer.link.trust
            ):
                self._mesh.sharing.tell(peer.link, event, line)

    def event(self, link: Link, line: Message) -> None:
        """Something happened elsewhere."""
        event = decode(line)
        server = event.id.origin
        if isinstance(event, Said | Redacted):
            if is_channel(event.target):
                self._heard(link, line, event)
            else:
                self._mesh.courier.take(link, line, event)
            return
        if isinstance(event, Invited) and owner_of(event.nick) != self._mesh.own:
            self._mesh.courier.route(line, owner_of(event.nick))
            return
        check_origin(self._mesh, link, server)
        if isinstance(event, Invited):
            invited = believed(self._host.network, event, is_vouched(self._host.network, link.trust, server))
            if invited is not None and crosses_by_name(self._host.network, event.channel, link.trust):
                self.apply(invited, None)
        elif self._mesh.presence.follows(link, event.id):
            self._change(link, line, event)

    def _change(self, link: Link, line: Message, event: Event) -> None:
        name = getattr(event, "channel", None)
        if isinstance(name, str) and not crosses_by_name(self._host.network, name, link.trust):
            return
        heard, vouched = event, is_vouched(self._host.network, link.trust, event.id.origin)
        taken = believed(self._host.network, event, vouched)
        if taken is None:
            self._mesh.sharing.contradict(link, heard)
            return
        event = taken
        tags = line.tags if vouched else {}
        with self._mesh.applying():
            is_known = registers.change(self._host, event, tags, self.apply)
        if not is_known and isinstance(name, str):
            self._mesh.presence.tell_channel(link, name)
        for peer in self._mesh.others(link):
            if not isinstance(name, str) or crosses_by_name(self._host.network, name, peer.link.trust):
                self._mesh.sharing.tell(peer.link, event, line)
        if isinstance(event, Kicked) and owner_of(event.nick) == self._mesh.own:
            # Whoever heard of it in another order than we did learns how it ended.
            user = self._host.network.user(event.nick)
            if user is not None:
                gone = Parted(self._host.stamp(), user.source, event.channel)
                self.tell_state(gone, encode(gone), None)

    def apply(self, event: Event, version: int | None) -> None:
        """Make it so here; ``version`` is what its origin calls the change of a channel."""
        network = self._host.network
        network.version = version
        try:
            with self._mesh.applying():
                self._host.publish(event)
        finally:
            network.version = None

    def _heard(self, link: Link, line: Message, event: Said | Redacted) -> None:
        number = line.tags.get("n")
        theirs = int(number) if number is not None else None
        if theirs is not None:
            link.read = max(link.read, theirs)
        stamp = event.id
        if self._mesh.log.seen.knows(stamp.origin, stamp.epoch, stamp.seq):
            return
        if not crosses_by_name(self._host.network, event.target, link.trust):
            return
        data = str(line._replace(tags={key: value for key, value in line.tags.items() if key != "n"}))
        if stamp.origin == self._mesh.own:
            self._check_seal(line)
        else:
            check_origin(self._mesh, link, stamp.origin)
        network, is_own = self._host.network, stamp.origin == self._mesh.own
        vouched = is_vouched(network, link.trust, stamp.origin, line)
        taken = event if is_own else believed(network, event, vouched)
        if not vouched and not is_own:
            data = unvouched(data)
        self._keep(self.clamped(event), data, link, theirs)
        if taken is not None:
            self.apply(self.clamped(taken), None)

    def _check_seal(self, line: Message) -> None:
        bare = str(
            line._replace(
                tags={key: value for key, value in line.tags.items() if key not in ("n", "seal", UNVOUCHED_TAG)}
            )
        )
        if not self._seal.fits(bare, line.tags.get("seal", "")):
            raise Garbled("a message of ours without our seal")

    def clamped(self, event: Any) -> Any:
        """A time that is far ahead is that of a wrong clock: the message arrives now."""
        now = self._host.now()
        if event.id.at > now + _AHEAD:
            self._host.tell_operators(f"the clock of {event.id.origin} is {event.id.at - now:.0f} s ahead")
            return event._replace(id=event.id._replace(at=now))
        return event
