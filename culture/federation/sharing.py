"""Which channels cross which links when that changes, and whom a peer is told of where only some channels cross."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from culture.federation import registers
from culture.federation.belief import may_begin
from culture.federation.codec.fields import Garbled
from culture.federation.link import Link
from culture.federation.settings import LONGEST_CHANNEL
from culture.federation.trust import check_origin, check_room, crosses, has_authority, is_restricted, is_shown, owner_of
from culture.protocol.message import Message
from culture.protocol.names import fold, valid_channel
from culture.protocol.vocabulary import ChannelMode
from culture.server.core.state import MEMBER_MODES, Channel, User
from culture.server.events import (
    Arrived,
    ChannelRenamed,
    Event,
    Joined,
    Kicked,
    Left,
    MetadataSet,
    ModeSet,
    Parted,
    Renamed,
    Walloped,
    nick_of,
)
from culture.server.skill import Host, hook

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

_BORDERS = (ChannelMode.LOCAL, ChannelMode.SHARED)
_PER_LINE = 200


class Sharing:
    """Tells peers who is in a channel from now on, or is not any more."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host

    @hook(ModeSet)
    def changed(self, event: ModeSet) -> None:
        """Another border: those behind it are in the channel no more, those within it are."""
        channel = self._host.network.channel(event.channel)
        if channel is None or not any(change.mode in _BORDERS for change in event.changes):
            return
        inside = {peer.link.peer for peer in self._mesh.live() if crosses(channel, peer.link.trust)}
        for peer in self._mesh.live():
            link = peer.link
            if link.peer in inside:
                self._open(link, channel)
            else:
                self._tell(link, "NPART", channel.name, [user.nick for user in channel.members])
        self._part_outside(channel, inside)

    @hook(ChannelRenamed)
    def renamed(self, event: ChannelRenamed) -> None:
        """Where channels cross by their names, another name is another channel."""
        channel = self._host.network.channel(event.new)
        for peer in self._mesh.live():
            link = peer.link
            if channel is None or not is_restricted(link.trust):
                continue
            if fold(event.channel) in map(fold, link.trust.channels):
                self._tell(link, "NPART", event.channel, [user.nick for user in channel.members])
            if crosses(channel, link.trust):
                self._open(link, channel)
        if channel is not None and not self._mesh.is_applying:
            self._part_outside(channel, {p.link.peer for p in self._mesh.live() if crosses(channel, p.link.trust)})

    def _open(self, link: Link, channel: Channel) -> None:
        link.send(registers.line_of(channel, self._mesh.own))
        self._tell(link, "MEMBERS", channel.name, self._members(channel, link))
        link.send(Message("WANT", (channel.name,), self._mesh.own))

    def _part_outside(self, channel: Channel, inside: set[str]) -> None:
        reached = {self._mesh.own, *inside}
        outside = [user for user in channel.members if self._way(user) not in reached or _is_outside(channel, user)]
        self._part(channel.name, outside)

    def _part(self, name: str, users: Iterable[User]) -> list[str]:
        gone = []
        with self._mesh.applying():
            for user in users:
                gone.append(user.nick)
                self._host.publish(Parted(self._host.stamp(), user.source, name))
        return gone

    def _way(self, user: User) -> str:
        """The peer over whose link the user is reached; our own name where they are here."""
        server = owner_of(user.nick)
        if server == self._mesh.own:
            return server
        way = self._host.network.servers.get(server)
        return way.via if way is not None else ""

    def _members(self, channel: Channel, link: Link) -> list[str]:
        """Whom the peer does not know better than we do, with their ranks."""
        return [_ranked(user, rank) for user, rank in channel.members.items() if self._way(user) != link.peer]

    def wanted(self, link: Link, name: str) -> None:
        """Say who is in a channel, and what it is set to."""
        channel = self._host.network.channel(name)
        if channel is not None and crosses(channel, link.trust):
            link.send(registers.line_of(channel, self._mesh.own))
            self._tell(link, "MEMBERS", channel.name, self._members(channel, link))

    def joined(self, link: Link, line: Message) -> None:
        """Members that the peer tells of, since the channel crosses again; passed on as far as they are news."""
        name, words = line.params
        if not valid_channel(name, LONGEST_CHANNEL):
            raise Garbled(f"{name[:LONGEST_CHANNEL]} is no channel")
        network, news = self._host.network, []
        if not may_begin(network, name, has_authority(link.trust)):
            return
        for user, rank in self._theirs(link, words):
            channel = network.channel(name)
            if channel is not None and (user in channel.members or _is_outside(channel, user)):
                continue
            if not self._crosses(link, name):
                continue
            check_room(0, len(network.channels))
            held = rank if has_authority(link.trust) else ""
            with self._mesh.applying():
                self._host.publish(Joined(self._host.stamp(), user.source, name, held, user.account, user.realname))
            news.append(_ranked(user, held))
        self._pass_on(link, "MEMBERS", name, news)

    def parted(self, link: Link, line: Message) -> None:
        """Members that are behind a border now; passed on as far as they are news."""
        name, words = line.params
        channel = self._host.network.channel(name)
        if channel is not None:
            gone = [user for user, _ in self._theirs(link, words) if user in channel.members]
            self._pass_on(link, "NPART", channel.name, self._part(channel.name, gone))

    def _theirs(self, link: Link, words: str) -> Iterator[tuple[User, str]]:
        """Those of the nicks, with their ranks, who are reached over this link."""
        for word in words.split(","):
            user = self._host.network.user(word.lstrip("@+"))
            if user is None or self._way(user) != link.peer:
                continue
            check_origin(self._mesh, link, owner_of(user.nick))
            yield user, "".join(mode for mode, symbol in MEMBER_MODES.items() if symbol in word[:2])

    def _crosses(self, link: Link, name: str) -> bool:
        channel = self._host.network.channel(name)
        return crosses(channel, link.trust) if channel is not None else not is_restricted(link.trust)

    def _pass_on(self, link: Link, verb: str, name: str, words: list[str]) -> None:
        for peer in self._mesh.others(link):
            if words and self._crosses(peer.link, name):
                self._tell(peer.link, verb, name, words)

    def _tell(self, link: Link, verb: str, name: str, words: list[str]) -> None:
        for start in range(0, len(words), _PER_LINE):
            link.send(Message(verb, (name, ",".join(words[start : start + _PER_LINE])), self._mesh.own))

    def contradict(self, link: Link, event: Event) -> None:
        """Somebody without a say removed a user of ours: they are still there."""
        if isinstance(event, Kicked) and owner_of(event.nick) == self._mesh.own:
            channel, user = self._host.network.channel(event.channel), self._host.network.user(event.nick)
            if channel is not None and user is not None and user in channel.members:
                self._tell(link, "MEMBERS", channel.name, [_ranked(user, channel.members[user])])

    def tell(self, link: Link, event: Event, line: Message) -> None:
        """Tell a peer of an event, as far as it may know of whom it concerns."""
        if not is_restricted(link.trust):
            link.send(line)
        elif not isinstance(event, Walloped | MetadataSet | ChannelRenamed):
            self._tell_restricted(link, event, line)

    def _tell_restricted(self, link: Link, event: Event, line: Message) -> None:
        """Whoever comes into sight or goes out of it does so with the whole roster of their server."""
        nick = event.nick if isinstance(event, Arrived | Kicked) else nick_of(event.source)  # type: ignore[union-attr]
        was_shown = fold(nick) in link.shown
        if isinstance(event, Left | Renamed):
            if was_shown:
                link.send(line)
                link.shown.discard(fold(nick))
                link.shown |= {fold(event.new)} if isinstance(event, Renamed) else set()
            return
        user = self._host.network.user(nick)
        is_now = user is not None and is_shown(user, link.trust)
        if was_shown == is_now:
            if is_now or hasattr(event, "channel"):
                link.send(line)
        else:
            for each in self._mesh.presence.roster_lines(owner_of(nick), link):
                link.send(each)

    def showing(self, server: str, link: Link) -> None:
        """The peer is told of the users of a server."""
        if is_restricted(link.trust):
            users = [user for user in self._host.network.users.values() if owner_of(user.nick) == server]
            link.shown = {nick for nick in link.shown if owner_of(nick) != server}
            link.shown |= {fold(user.nick) for user in users if is_shown(user, link.trust)}


def _is_outside(channel: Channel, user: User) -> bool:
    """Is the channel not shared with the user's server?"""
    return channel.shared is not None and owner_of(user.nick) not in channel.shared


def _ranked(user: User, rank: str) -> str:
    return "".join(symbol for mode, symbol in MEMBER_MODES.items() if mode in rank) + user.nick
