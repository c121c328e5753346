"""Servers without sockets: networks that tell each other what they know, in whichever order a test lets it arrive."""

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from culture.config.links import LinkConfig as Settings
from culture.federation import registers, settings
from culture.federation.following import Heard, concerns_channel
from culture.federation.foundings import Verdict
from culture.federation.roster import Intake, Roster, burst
from culture.protocol.message import Message
from culture.protocol.names import fold
from culture.server.core.ids import EventId
from culture.server.core.network import Network
from culture.server.events import Arrived, Event, Left
from culture.server.skill import Host


class Told(NamedTuple):
    """Something that happened, as it goes over a link."""

    event: Event
    tags: Mapping[str, str]


Item = Told | Message


class Side:
    """One server, as far as what it knows goes."""

    def __init__(self, name: str, clock: "Clock") -> None:
        self.name = name
        self.network = Network(channel_modes="nt" if name == "a" else "n")
        self._clock = clock
        self._seq = 0
        self.links: dict[str, deque[Item]] = {}
        """What is on its way to each of the others that are linked."""
        self._rosters: dict[str, Roster] = {}
        self._heard = Heard()

    def stamp(self) -> EventId:
        """The next id."""
        self._seq += 1
        return EventId(self.name, "e", self._seq, self._clock.tick())

    def now(self) -> float:
        """The time."""
        return 0.0

    def publish(self, event: Event) -> None:
        """Make it so here."""
        self.network.apply(event)

    @property
    def host(self) -> Host:
        """What the code under test asks for."""
        return cast(Host, self)

    def arrive(self, nick: str) -> None:
        """One more user."""
        event = Arrived(self.stamp(), f"{self.name}-{nick}", "u", "h", "r", self.name)
        self.do(event)

    def do(self, event: Event) -> None:
        """Something happens here, and the others are told."""
        self.publish(event)
        told = Told(event, registers.tags_of(self.network, event))
        for queue in self.links.values():
            queue.append(told)

    def link(self, other: str) -> None:
        """A link comes up: tell what we know."""
        link = Settings(name=other, secret="x" * 16)
        self.links[other] = deque(burst(self.network, self.name, self.name, "e", self._seq, link))
        self.links[other].extend(registers.burst(self.network, self.name, link))

    def cut(self, other: str) -> None:
        """A link is lost, and whatever was on its way."""
        del self.links[other]
        self._rosters.pop(other, None)
        self.network.ahead.clear()

    def lose(self, other: str) -> None:
        """No way leads there any more: its users are gone."""
        self.network.ahead.clear()
        for user in [user for user in self.network.users.values() if user.server == other]:
            self.publish(Left(self.stamp(), user.source, f"{self.name} {other}"))

    def take(self, other: str, item: Item) -> None:
        """What comes over a link; what is about a channel is passed on, and taken once."""
        if isinstance(item, Told):
            if concerns_channel(item.event):
                if item.event.id.origin == self.name or not self._heard.is_new(item.event.id):
                    return
                for each in self.links.keys() - {other}:
                    self.links[each].append(item)
            verdict = registers.change(self.host, item.event, item.tags, self._apply)
            name = getattr(item.event, "channel", "")
            if verdict is Verdict.NEW:
                self.links[other].append(Message("WANT", (name,)))
            for each in self.links if verdict is Verdict.THEIRS else [other] if verdict is Verdict.OURS else ():
                self._tell_channel(each, name, verdict is Verdict.THEIRS)
        elif item.verb == "WANT":
            self._tell_channel(other, item.params[0])
        elif item.verb == "ROSTER":
            self._rosters[other] = Roster(other, other, "e", int(item.params[2]))
        elif item.verb == "ENDROSTER":
            intake = Intake(self.host, self._rosters.pop(other), "gone")
            intake.take()
            for name in intake.settled:
                for each in self.links:
                    self._tell_channel(each, name, lives=True)
        elif item.verb == "CHANNEL":
            told = settings.read(item)
            if registers.merge(self.host, told):
                for each in self.links:
                    if each != other:
                        self._tell_channel(each, told.name, told.lives)
        else:
            self._rosters[other].take(item)

    def _tell_channel(self, other: str, name: str, lives: bool = False) -> None:
        channel = self.network.channel(name)
        if channel is not None:
            self.links[other].append(settings.line_of(channel, self.name, lives))

    def _apply(self, event: Event, version: int | None) -> None:
        self.network.version = version
        try:
            self.publish(event)
        finally:
            self.network.version = None

    def picture(self) -> dict[str, Any]:
        """Who is where, and what everything is set to."""
        users = {
            key: (user.away, user.realname, user.metadata, sorted(channel.name for channel in user.channels))
            for key, user in self.network.users.items()
        }
        channels = {}
        for key, channel in self.network.channels.items():
            channels[key] = {
                "members": {fold(user.nick): rank for user, rank in channel.members.items()},
                "flags": sorted(channel.flags - settings.OWN),
                "topic": channel.topic,
                "key": channel.key,
                "limit": channel.limit,
                "lists": {mode: sorted(entries) for mode, entries in channel.lists.items() if entries},
                "metadata": channel.metadata,
                "founded": settings.founded(channel),
            }
        return {"users": users, "channels": channels}


class Clock:
    """A time that is later each time one looks, and the same for all."""

    def __init__(self) -> None:
        self._now = 1_800_000_000.0

    def tick(self) -> float:
        """One second later."""
        self._now += 1
        return self._now
