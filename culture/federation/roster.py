"""A server's users as lines of a burst, and what is different from what we know."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from culture.config.links import Link as Settings
from culture.federation.codec import Garbled, encode
from culture.federation.trust import UNVOUCHED_TAG, crosses, owner_of
from culture.protocol.message import NO_TAGS, Message
from culture.protocol.modes import Change
from culture.protocol.names import fold
from culture.server.events import (
    AccountSet,
    Arrived,
    AwaySet,
    Event,
    HostSet,
    Joined,
    Left,
    MetadataSet,
    ModeSet,
    Parted,
    RealnameSet,
    UserModeSet,
)
from culture.server.ids import Stamp
from culture.server.network import Network
from culture.server.skill import Host
from culture.server.state import MEMBER_MODES, User

_MEMBERS_PER_LINE = 200


@dataclass(slots=True)
class Person:
    """A user as a peer tells of it."""

    arrived: Arrived
    away: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Roster:
    """The users of a server, and where they are, as of a version."""

    server: str
    name: str
    epoch: str
    version: int
    people: dict[str, Person] = field(default_factory=dict)
    channels: dict[str, dict[str, str]] = field(default_factory=dict)
    """Nicks and their ranks, by the name of the channel."""
    is_unvouched: bool = False
    """Has nobody with a say stood for what its users are?"""

    def take(self, line: Message) -> None:
        """One more line between ROSTER and ENDROSTER."""
        if line.verb == "NICK" and len(line.params) == 7:
            nick, _, username, host, server, modes, realname = line.params
            if owner_of(nick) != self.server:
                raise Garbled(f"{nick} is no nick of {self.name}")
            tags = line.tags
            stamp = Stamp(self.server, self.epoch, self.version, int(tags.get("at", "0")) / 1e6)
            account, kind = tags.get("account"), tags.get("kind", "unknown")
            arrived = Arrived(stamp, nick, username, host, realname, server, account, kind, modes.removeprefix("+"))
            meta = json.loads(tags["meta"]) if "meta" in tags else {}
            self.people[fold(nick)] = Person(arrived, tags.get("away"), {str(k): str(v) for k, v in meta.items()})
        elif line.verb == "NJOIN" and len(line.params) == 2:
            members = self.channels.setdefault(line.params[0], {})
            for word in line.params[1].split(","):
                rank = "".join(mode for mode, symbol in MEMBER_MODES.items() if symbol in word[:2])
                members[fold(word.lstrip("@+"))] = rank
        else:
            raise Garbled(f"{line.verb} in a roster")


def burst(
    network: Network, roster_of: str, name: str, epoch: str, version: int, settings: Settings
) -> Iterator[Message]:
    """The lines that tell of a server's users, as far as the peer may know of them."""
    users = [user for user in network.users.values() if owner_of(user.nick) == roster_of]
    channels = [channel for channel in network.channels.values() if crosses(channel, settings)]
    if settings.trust == "restricted":
        users = [user for user in users if any(user in channel.members for channel in channels)]
    tags = {UNVOUCHED_TAG: "1"} if roster_of in network.unvouched else NO_TAGS
    yield Message("ROSTER", (name, epoch, str(version)), name, tags)
    for user in users:
        yield _person(user, name, settings)
    known = set(users)
    for channel in channels:
        words = [_ranked(user, rank) for user, rank in channel.members.items() if user in known]
        for start in range(0, len(words), _MEMBERS_PER_LINE):
            yield Message("NJOIN", (channel.name, ",".join(words[start : start + _MEMBERS_PER_LINE])), name)
    yield Message("ENDROSTER", (name,), name)


def _person(user: User, server: str, settings: Settings) -> Message:
    modes = "".join(sorted(user.modes & set("Bi")))
    stamp = Stamp(owner_of(user.nick), "-", 0, user.since)
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


def differences(host: Host, roster: Roster, reason: str) -> Iterator[Event]:
    """The events that make what we know what the roster says; each to be published before the next is asked for."""
    network = host.network
    known = {key: user for key, user in network.users.items() if owner_of(user.nick) == roster.server}
    for key, user in known.items():
        if key not in roster.people:
            yield Left(host.stamp(), user.source, reason)
    for key, person in roster.people.items():
        there = network.users.get(key)
        if there is None:
            yield person.arrived._replace(id=host.stamp()._replace(at=person.arrived.id.at))
            there = network.users[key]
        else:
            yield from _changed(host, there, person.arrived)
        if there.away != person.away:
            yield AwaySet(host.stamp(), there.source, person.away)
        for name in set(there.metadata or {}) | set(person.metadata):
            if (there.metadata or {}).get(name) != person.metadata.get(name):
                yield MetadataSet(host.stamp(), there.source, there.nick, name, person.metadata.get(name))
    yield from _memberships(host, roster)


def _changed(host: Host, user: User, said: Arrived) -> Iterator[Event]:
    if user.nick != said.nick:
        user.rename(said.nick)  # the same letters in another case
    if (user.username, user.host) != (said.username, said.host):
        yield HostSet(host.stamp(), user.source, said.username, said.host)
    if user.realname != said.realname:
        yield RealnameSet(host.stamp(), user.source, said.realname)
    if (user.account, user.account_kind) != (said.account, said.kind):
        yield AccountSet(host.stamp(), user.source, said.account, said.kind)
    changes = [Change(mode in said.modes, mode) for mode in "Bi" if (mode in said.modes) != (mode in user.modes)]
    if changes:
        yield UserModeSet(host.stamp(), user.source, tuple(changes))


def _memberships(host: Host, roster: Roster) -> Iterator[Event]:
    network = host.network
    wanted = {fold(name): members for name, members in roster.channels.items()}
    for user in [user for user in network.users.values() if owner_of(user.nick) == roster.server]:
        for channel in list(user.channels):
            if fold(user.nick) not in wanted.get(fold(channel.name), {}):
                yield Parted(host.stamp(), user.source, channel.name)
    for name, members in roster.channels.items():
        for key, rank in members.items():
            member = network.users.get(key)
            if member is not None:
                yield from _membership(host, roster, name, member, rank)


def _membership(host: Host, roster: Roster, name: str, user: User, rank: str) -> Iterator[Event]:
    channel = host.network.channel(name)
    if channel is None or user not in channel.members:
        yield Joined(host.stamp(), user.source, name, rank, user.account, user.realname)
    elif (held := channel.members[user]) != rank:
        changes = [Change(mode in rank, mode, user.nick) for mode in MEMBER_MODES if (mode in rank) != (mode in held)]
        yield ModeSet(host.stamp(), roster.name, channel.name, tuple(changes))
