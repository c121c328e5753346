"""A server's users as lines of a burst, and what is different from what we know."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from culture.config.links import LinkConfig as Settings
from culture.federation.belief import believed, fits, may_begin
from culture.federation.codec import encode
from culture.federation.codec.fields import Garbled, number
from culture.federation.foundings import Claim, Verdict, begin, found_anew, set_unmarked, settle, unmarked
from culture.federation.settings import founded, read_metadata
from culture.federation.trust import UNVOUCHED_TAG, check_room, crosses, owner_of
from culture.protocol.message import NO_TAGS, Message
from culture.protocol.modes import ModeChange
from culture.protocol.names import fold, valid_channel, valid_local_nick
from culture.server.core.changes.channels import LATEST
from culture.server.core.ids import MICROSECONDS, EventId
from culture.server.core.network import Network
from culture.server.core.state import MEMBER_MODES, Channel, Mark, User
from culture.server.events import (
    AccountSet,
    Arrived,
    AwaySet,
    Event,
    HostSet,
    Joined,
    Left,
    MetadataSet,
    Parted,
    RealnameSet,
    Renamed,
    UserModeSet,
)
from culture.server.skill import Host

_MEMBERS_PER_LINE = 200
_SHOWN_MODES = frozenset("Bio")
_LONGEST = 600
_LONGEST_NICK = 64
_LONGEST_CHANNEL = 200
_LARGEST = 64 << 20  # characters of a whole roster
_BREAKS = frozenset("\r\n\0")
_JOINS_TAG = "j"


@dataclass(slots=True)
class Person:
    """A user as a peer tells of it."""

    arrived: Arrived
    away: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Members:
    """Who of a server is in a channel, with their ranks by folded nick, and what it says of its founding."""

    claim: Claim
    ranks: dict[str, str] = field(default_factory=dict)
    joins: dict[str, Mark] = field(default_factory=dict)
    """When they came in, as far as the peer says so: the ranks of before are lost."""


@dataclass(slots=True)
class Roster:
    """The users of a server, and where they are, as of a version."""

    server: str
    name: str
    epoch: str
    version: int
    is_unvouched: bool = False
    """Has nobody with a say stood for what its users are?"""
    people: dict[str, Person] = field(default_factory=dict)
    channels: dict[str, Members] = field(default_factory=dict)
    size: int = 0

    def take(self, line: Message) -> None:
        """One more line between ROSTER and ENDROSTER."""
        self.size += sum(map(len, line.params)) + sum(map(len, line.tags.values()))
        if self.size > _LARGEST:
            raise Garbled("more than a mesh has")
        if line.verb == "NICK" and len(line.params) == 7:
            self._take_person(line)
        elif line.verb == "NJOIN" and len(line.params) == 4:
            self._take_members(line)
        else:
            raise Garbled(f"{line.verb} in a roster")

    def _take_person(self, line: Message) -> None:
        nick, _, username, host, _, modes, realname = line.params
        if not valid_local_nick(nick, self.server, _LONGEST_NICK):
            raise Garbled(f"{nick} is no nick of {self.name}")
        tags = line.tags
        stamp = EventId(self.server, self.epoch, self.version, number(tags.get("at", "0")) / MICROSECONDS)
        account, kind = tags.get("account"), tags.get("kind", "unknown")
        shown = modes.removeprefix("+")
        arrived = Arrived(stamp, nick, username, host, realname, self.name, account, kind, shown)
        away = tags.get("away")
        if set(away or "") & _BREAKS or len(away or "") > _LONGEST:
            raise Garbled(f"what is said of {nick} does not fit in a line")
        check_room(len(self.people), 0)
        metadata = read_metadata(tags.get("meta", "{}"))
        self.people[fold(nick)] = Person(arrived, away, metadata if fits(metadata) else {})

    def _take_members(self, line: Message) -> None:
        name, founded, flags, words = line.params
        if not valid_channel(name, _LONGEST_CHANNEL):
            raise Garbled(f"{name} is no channel")
        claim = Claim(number(founded), flags.removeprefix("+"))
        check_room(0, len(self.channels))
        members = self.channels.setdefault(name, Members(claim))
        nicks = []
        for word in words.split(","):
            nick = word.lstrip("@+")
            nicks.append(fold(nick))
            members.ranks[fold(nick)] = _RANKS[word[: len(word) - len(nick)]]
        joins = line.tags[_JOINS_TAG].split(",") if _JOINS_TAG in line.tags else []
        members.joins |= {key: _read_join(join, self.server) for key, join in zip(nicks, joins, strict=False) if join}


def _join_of(channel: Channel, user: User) -> str:
    """When the user came into the channel: ``version:time:number``; empty where only their server knows."""
    mark = channel.joins.get(fold(user.nick))
    if mark is None or mark.origin != owner_of(user.nick):
        return ""
    return f"{mark.version}:{round(mark.at * MICROSECONDS)}:{mark.seq}"


def _read_join(text: str, server: str) -> Mark:
    words = text.split(":")
    if len(words) != 3:
        raise Garbled(f"{text[:_LONGEST_NICK]} is no join")
    version, at, seq = map(number, words)
    return Mark(min(version, LATEST), at / MICROSECONDS, server, seq)


_RANKS = {"": "", "@": "o", "+": "v", "@+": "ov"}


def burst(
    network: Network, roster_of: str, name: str, epoch: str, version: int, settings: Settings
) -> Iterator[Message]:
    """The lines that tell of a server's users, as far as the peer may know of them."""
    users = [user for user in network.users.values() if owner_of(user.nick) == roster_of]
    is_restricted = settings.trust == "restricted"
    places: dict[Channel, list[User]] = {}
    told: list[User] = []
    allowed: dict[Channel, bool] = {}
    for user in users:
        for channel in user.channels:
            if channel not in allowed:
                allowed[channel] = crosses(channel, settings)
        shown = [channel for channel in user.channels if allowed[channel]]
        if is_restricted and not shown:
            continue
        told.append(user)
        for channel in shown:
            places.setdefault(channel, []).append(user)
    tags = {UNVOUCHED_TAG: "1"} if roster_of in network.unvouched else NO_TAGS
    yield Message("ROSTER", (name, epoch, str(version)), name, tags)
    for user in told:
        yield _person(user, name, settings)
    for channel, members in places.items():
        claim = Claim.of(channel)
        for start in range(0, len(members), _MEMBERS_PER_LINE):
            some = members[start : start + _MEMBERS_PER_LINE]
            words = ",".join(_ranked(user, channel.members[user]) for user in some)
            joins = ",".join(_join_of(channel, user) for user in some)
            joined = {_JOINS_TAG: joins} if joins.strip(",") else NO_TAGS
            yield Message("NJOIN", (channel.name, str(claim.founded), f"+{claim.flags}", words), name, joined)
    yield Message("ENDROSTER", (name,), name)


def _person(user: User, server: str, settings: Settings) -> Message:
    modes = "".join(sorted(user.modes & _SHOWN_MODES))
    stamp = EventId(owner_of(user.nick), "-", 0, user.since)
    line = encode(
        Arrived(
            stamp, user.nick, user.username, user.host, user.realname, server, user.account, user.account_kind, modes
        )
    )
    tags = dict(line.tags)
    if user.away is not None:
        tags["away"] = user.away
    if user.metadata and settings.trust != "restricted":
        tags["meta"] = json.dumps(user.metadata, ensure_ascii=False, separators=(",", ":"))
    return line._replace(tags=tags)


def _ranked(user: User, rank: str) -> str:
    return "".join(symbol for mode, symbol in MEMBER_MODES.items() if mode in rank) + user.nick


class Intake:
    """Makes what we know of a server what its roster says; each difference is an event here."""

    def __init__(self, host: Host, roster: Roster, reason: str, vouched: bool = True) -> None:
        self._host = host
        self._roster = roster
        self._reason = reason
        self._vouched = vouched
        self.is_news = False
        self.settled: list[str] = []
        """The channels that we founded later than others."""

    def take(self) -> bool:
        """Was anything different?"""
        users = self._host.network.users
        for user in [user for user in users.values() if owner_of(user.nick) == self._roster.server]:
            if fold(user.nick) not in self._roster.people:
                self._publish(Left(self._host.stamp(), user.source, self._reason))
        for key, person in self._roster.people.items():
            self._take_person(key, person)
        self._leave_channels()
        for name, members in self._roster.channels.items():
            self._take_members(name, members)
        return self.is_news

    def _publish(self, event: Event) -> None:
        self.is_news = True
        if isinstance(event, Arrived | Joined):
            network = self._host.network
            check_room(len(network.users), len(network.channels))
        self._host.publish(event)

    def _take_person(self, key: str, person: Person) -> None:
        host = self._host
        stamp = host.stamp()._replace(origin=self._roster.server)
        said = believed(
            host.network, person.arrived._replace(id=stamp._replace(at=person.arrived.id.at)), self._vouched
        )
        assert isinstance(said, Arrived)
        there = host.network.users.get(key)
        if there is None:
            self._publish(said)
            there = host.network.users[key]
        else:
            self._change(there, said)
        if there.away != person.away:
            self._publish(AwaySet(host.stamp(), there.source, person.away))
        if there.metadata or person.metadata:
            for name in {**(there.metadata or {}), **person.metadata}:
                if (there.metadata or {}).get(name) != person.metadata.get(name):
                    value = person.metadata.get(name)
                    self._publish(MetadataSet(host.stamp(), there.source, there.nick, name, value))

    def _change(self, user: User, said: Arrived) -> None:
        host = self._host
        if user.nick != said.nick:  # the same letters in another case
            self._publish(Renamed(host.stamp(), user.source, said.nick))
        if (user.username, user.host) != (said.username, said.host):
            self._publish(HostSet(host.stamp(), user.source, said.username, said.host))
        if user.realname != said.realname:
            self._publish(RealnameSet(host.stamp(), user.source, said.realname))
        if (user.account, user.account_kind) != (said.account, said.kind):
            self._publish(AccountSet(host.stamp(), user.source, said.account, said.kind))
        differ = [mode for mode in sorted(_SHOWN_MODES) if (mode in said.modes) != (mode in user.modes)]
        if differ:
            self._publish(
                UserModeSet(host.stamp(), user.source, tuple(ModeChange(mode in said.modes, mode) for mode in differ))
            )

    def _leave_channels(self) -> None:
        present = {fold(name): members.ranks for name, members in self._roster.channels.items()}
        users = self._host.network.users
        for key in self._roster.people:
            user = users[key]
            for channel in list(user.channels):
                if key not in present.get(fold(channel.name), ()):
                    self._publish(Parted(self._host.stamp(), user.source, channel.name))

    def _take_members(self, name: str, members: Members) -> None:
        host = self._host
        if not may_begin(host.network, name, self._vouched):
            return
        channel = host.network.channel(name)
        begins = channel is None or not founded(channel)
        holds = self._vouched
        if holds and channel is not None and not begins:
            verdict = settle(host, name, members.claim)
            if verdict is Verdict.OURS and self._is_theirs(channel):
                # All had left, which we did not hear, and somebody came in anew.
                found_anew(host, channel, members.claim)
                verdict, self.is_news = Verdict.SAME, True
            holds = verdict is not Verdict.OURS
            if verdict is Verdict.THEIRS:
                self.settled.append(name)
        for key, rank in members.ranks.items():
            user = host.network.users.get(key)
            if user is None or key not in self._roster.people:
                raise Garbled(f"{key} is in {name} and not on {self._roster.name}")
            channel = host.network.channel(name)
            if channel is None or user not in channel.members:
                status = rank if holds else ""
                with unmarked(host.network):
                    self._publish(Joined(host.stamp(), user.source, name, status, user.account, user.realname))
                if begins:
                    begins = False
                    if self._vouched:
                        begin(host, name, members.claim)
            channel = host.network.channel(name)
            if holds and channel is not None and user in channel.members:
                self._take_rank(channel, user, rank, members.joins.get(key))

    def _is_theirs(self, channel: Channel) -> bool:
        """Has the channel no members but theirs, and does it end with the last of them?"""
        return not channel.is_kept and all(owner_of(user.nick) == self._roster.server for user in channel.members)

    def _take_rank(self, channel: Channel, user: User, rank: str, joined: Mark | None) -> None:
        """Take the rank of somebody who has left and come in again, which we did not hear.

        A rank that was set since they came in is said with the channel, and so it is left alone here.
        """
        key = fold(user.nick)
        if joined is not None:
            if joined <= channel.joins.get(key, joined._replace(version=-1)):
                return
            channel.joins[key] = joined
            channel.clock = max(channel.clock, joined.version)
            self.is_news = True
        changes = []
        for mode in MEMBER_MODES:
            part = f"{mode}:{key}"
            if part in channel.marks:
                if joined is None or channel.marks[part] > joined:
                    continue
                del channel.marks[part]
            if (mode in rank) != (mode in channel.members[user]):
                changes.append(ModeChange(mode in rank, mode, user.nick))
        self.is_news = self.is_news or bool(changes)
        set_unmarked(self._host, channel, changes)
