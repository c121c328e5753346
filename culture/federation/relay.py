"""What happens here is told to the others, and what happens there happens here."""

from typing import TYPE_CHECKING

from culture.federation import registers
from culture.federation.belief import believed, check_words
from culture.federation.codec import EVENTS, decode, encode
from culture.federation.link import Link
from culture.federation.messages import Kept
from culture.federation.plain import plain
from culture.federation.trust import (
    check_origin,
    check_room,
    check_source,
    crosses_by_name,
    for_whom,
    is_local,
    is_restricted,
    is_vouched,
    may_write,
    message_crosses,
    owner_of,
    place_of,
)
from culture.protocol.message import Message
from culture.protocol.names import is_channel
from culture.server.events import (
    Arrived,
    ChannelRenamed,
    Event,
    Invited,
    Joined,
    Kicked,
    Left,
    MetadataSet,
    Noted,
    Parted,
    Receipted,
    Redacted,
    Renamed,
    Said,
    nick_of,
)
from culture.server.skill import Host, hook

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

_MESSAGES = (Said, Redacted, Noted, Receipted)


class Relay:
    """Passes events on, each once to everybody who may know of it."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self._applied: Event | None = None
        self._last_passed: dict[str, tuple[str, int]] = {}

    @hook(*EVENTS)
    def happened(self, event: Event) -> None:
        """Something happened here: tell the others."""
        if event.id.origin != self._mesh.own or event is self._applied:
            return
        if isinstance(event, _MESSAGES):
            # Also what a skill answers to something that was said elsewhere.
            if not is_local(self._host.network, event.target):
                self._said(event)
        elif self._mesh.is_applying:
            return
        elif isinstance(event, Invited):
            self._mesh.courier.route(encode(event), event)
        else:
            self.tell_state(event, encode(event), None)

    def _said(self, event: Kept) -> None:
        if isinstance(event, Said) and event.target[0] == "#" and event.verb != "TAGMSG":
            self._mesh.messages.said(event, plain(event))
            return
        line = encode(event)
        if is_passing(event):
            self._pass(event, line, None)
        elif _is_for_all(event):
            self._mesh.messages.said(event, str(line))
        else:
            self._mesh.courier.send(event, line)

    def _pass(self, event: Kept, line: Message, link: Link | None) -> None:
        """What concerns the moment alone is not kept; nobody is told later."""
        if not is_channel(event.target):
            self._mesh.courier.route(line, event)
            return
        line = for_whom(self._host.network, event.target, line)
        for peer in self._mesh.others(link):
            if message_crosses(self._host.network, event.target, str(line), peer.link.trust):
                peer.link.send(line)

    def _passed(self, link: Link, line: Message, event: Kept) -> None:
        """Somebody elsewhere is typing, or no more."""
        check_origin(self._mesh, link, event.id.origin)
        if not is_channel(event.target) and owner_of(event.target) != self._mesh.own:
            check_source(event)
            check_words(event)
            self._mesh.courier.route(line, event)
            return
        last = self._last_passed.get(event.id.origin)
        if last is not None and last[0] == event.id.epoch and last[1] >= event.id.seq:
            return
        network = self._host.network
        if event.id.origin not in network.servers:
            return  # nobody can be reached there, and no name that is made up is remembered
        if is_channel(event.target) and not crosses_by_name(network, event.target, link.trust):
            return
        if not is_channel(event.target) and not may_write(network, event.source, event.target, link.trust):
            return
        shown = believed(network, event, is_vouched(network, link.trust, event.id.origin, line))
        self._last_passed[event.id.origin] = (event.id.epoch, event.id.seq)
        if is_channel(event.target):
            self._pass(event, line, link)
        if shown is not None:
            self.apply(shown, None)

    def tell_state(self, event: Event, line: Message, link: Link | None) -> None:
        """Tell the others of something that is not kept in the log."""
        name = place_of(event)
        line = line._replace(tags={**line.tags, **registers.tags_of(self._host.network, event)})
        for peer in self._mesh.others(link):
            if name is None or crosses_by_name(self._host.network, name, peer.link.trust):
                self._mesh.sharing.tell(peer.link, event, line)

    def event(self, link: Link, line: Message) -> None:
        """Something happened elsewhere."""
        event = decode(line)
        server = event.id.origin
        if isinstance(event, Kept):
            if is_passing(event):
                self._passed(link, line, event)
            elif _is_for_all(event):
                self._mesh.messages.heard(link, line, event)
            else:
                self._mesh.courier.take(link, line, event)
            return
        check_origin(self._mesh, link, server)
        if isinstance(event, Invited):
            self._invited(link, line, event)
        elif self._mesh.presence.follows(link, event):
            if isinstance(event, Arrived | Joined):
                check_room(len(self._host.network.users), len(self._host.network.channels))
            self._change(link, line, event)

    def _invited(self, link: Link, line: Message, event: Invited) -> None:
        """Somebody elsewhere invites somebody here, or behind us."""
        network = self._host.network
        invited = believed(network, event, is_vouched(network, link.trust, event.id.origin))
        if invited is None or not crosses_by_name(network, event.channel, link.trust):
            return
        if owner_of(event.nick) == self._mesh.own:
            self.apply(invited, None)
        else:
            self._mesh.courier.route(line, event)

    def _change(self, link: Link, line: Message, event: Event) -> None:
        name = event.channel if isinstance(event, ChannelRenamed) else place_of(event)
        if name is not None and not crosses_by_name(self._host.network, name, link.trust):
            return
        if is_restricted(link.trust) and isinstance(event, MetadataSet) and name is None:
            return
        heard, vouched = event, is_vouched(self._host.network, link.trust, event.id.origin)
        taken = believed(self._host.network, event, vouched)
        if taken is None:
            self._mesh.sharing.contradict(link, heard)
            if isinstance(heard, ChannelRenamed):
                self._mesh.presence.dispute(heard)
            return
        event = taken
        tags = line.tags if vouched else {}
        if isinstance(event, Arrived | Renamed):
            self._displace(event)
        with self._mesh.applying():
            verdict = registers.change(self._host, event, tags, self.apply)
        if name is not None:
            self._mesh.presence.answer(link, name, verdict)
        place = place_of(event)
        for peer in self._mesh.others(link):
            if place is None or crosses_by_name(self._host.network, place, peer.link.trust):
                self._mesh.sharing.tell(peer.link, event, line)
        if isinstance(event, ChannelRenamed):
            self._mesh.presence.is_unclear = True
        elif isinstance(event, Kicked) and owner_of(event.nick) == self._mesh.own:
            # Whoever heard of it in another order than we did learns how it ended.
            user = self._host.network.user(self._host.network.nick_now(event.nick))
            if user is not None:
                gone = Parted(self._host.stamp(), user.source, event.channel)
                self.tell_state(gone, encode(gone), None)

    def _displace(self, event: Arrived | Renamed) -> None:
        """Let go of a user whose nick another one takes: the peer has not said, or not yet, that the first has left.

        A member of a channel who is no user any more could never leave it.
        """
        network = self._host.network
        taker = network.user(nick_of(event.source)) if isinstance(event, Renamed) else None
        there = network.user(event.new if isinstance(event, Renamed) else event.nick)
        if there is not None and there is not taker:
            self.apply(Left(self._host.stamp(), there.source, "Nick taken"), None)

    def apply(self, event: Event, version: int | None) -> None:
        """Make it so here; ``version`` is what its origin calls the change of a channel."""
        network = self._host.network
        network.version = version
        before, self._applied = self._applied, event
        try:
            with self._mesh.applying():
                self._host.publish(event)
        finally:
            network.version, self._applied = None, before


def _is_for_all(event: Kept) -> bool:
    """Is it for the log, rather than for one user?"""
    return isinstance(event, Noted) or is_channel(event.target)


def is_passing(event: Kept) -> bool:
    """Does it say something about the moment alone?"""
    return isinstance(event, Said) and event.is_passing
