"""Reads at the end what each account may read, over a connection of its own."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from culture.protocol.message import Message
from culture.protocol.names import fold
from tests.simulation.clients import Person
from tests.simulation.workload import CLOSED, LOCAL, MAIN, SAYS

if TYPE_CHECKING:
    from tests.simulation.universe import Universe

_PAGE, _MOST = 200, 1000
_PATIENCE = 60.0


class ReadFact(NamedTuple):
    """A fact that was read; its nick and key are known."""

    state: str
    time: str
    server: str


class Reading:
    """What one account can read at its server: its channels, its conversations, and the facts."""

    def __init__(self, person: Person, reader: Person) -> None:
        self.person, self.reader = person, reader
        self.channel: list[tuple[str, str]] = []
        """Ids and texts of the main channel, the oldest first."""
        self.rooms: dict[str, list[tuple[str, str]]] = {}
        """The same of each further channel where it is."""
        self.private: dict[str, dict[str, str]] = {}
        """By nick, by id."""
        self.missed: set[str] = set()
        """Ids of what HISTORY MISSED shows."""
        self.facts: dict[tuple[str, str], ReadFact] = {}
        """The facts of agents, by nick and key."""
        self.all_texts: set[str] = set()
        """All texts that were shown, whatever was asked."""
        self.twice: list[str] = []
        """Texts that one answer to HISTORY showed twice."""
        self.is_done = False
        self.failure = ""

    async def read(self, others: Iterable[Person]) -> None:
        """Ask for everything."""
        try:
            await self.read_conversations({other.nick: other.first_nick for other in others})
            for room in (fold(name.split()[0]) for name in self.reader.channels if name != MAIN):
                self.rooms[room] = await self._all(room)
            await self._read_missed()
            await self._read_facts()
            for channel in (MAIN, CLOSED, LOCAL):
                await self._try(channel)
        except Exception as error:
            self.failure = repr(error)
        self.is_done = True

    async def read_conversations(self, nicks: Mapping[str, str]) -> None:
        """Ask for the main channel, and for what was said with users, each noted under another name."""
        self.channel = await self._all(MAIN)
        for nick, name in nicks.items():
            self.private[name] = dict(await self._all(nick))

    async def _all(self, target: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        reference = "*"
        while True:
            action = "LATEST" if reference == "*" else "BEFORE"
            lines = await self.reader.ask(f"CHATHISTORY {action} {target} {reference} {_PAGE}", "BATCH")
            if lines[-1].verb == "FAIL":
                raise AssertionError(str(lines[-1]))
            self._note(lines)
            page = [line for line in lines if line.verb in ("PRIVMSG", "NOTICE") and "msgid" in line.tags]
            found = [(line.tags["msgid"], line.params[-1]) for line in page if line.verb == "PRIVMSG"] + found
            if len(page) < _PAGE:
                return found
            reference = f"msgid={page[0].tags['msgid']}"

    def _note(self, lines: Iterable[Message]) -> None:
        self.all_texts.update(line.params[-1] for line in lines if line.verb == "PRIVMSG" or line.verb == "HISTORY")

    async def _read_missed(self) -> None:
        reference = "timestamp=2026-01-01T00:00:00.000Z"
        while reference:
            lines = await self.reader.ask(f"HISTORY MISSED {reference}", "HISTORYEND")
            if lines[-1].verb == "FAIL":
                raise AssertionError(str(lines[-1]))
            self._note(lines)
            self.missed.update(line.tags["msgid"] for line in lines if line.verb == "PRIVMSG")
            reference = "" if lines[-1].params[-1] == "End of results" else lines[-1].params[1]

    async def _read_facts(self) -> None:
        lines = await self.reader.ask("LEDGER GET task limit=1000", "LEDGEREND")
        if lines[-1].verb == "FAIL":
            raise AssertionError(str(lines[-1]))
        for line in lines:
            if line.verb == "LEDGER":
                nick, _, key, time, server = line.params
                state = json.loads(line.tags["+agentirc.dev/fact"])["state"]
                self.facts[nick, key] = ReadFact(state, time, server)

    async def _try(self, channel: str) -> None:
        """Ask for a channel in the other ways, whether the reader is in it or not."""
        self._note(await self.reader.ask(f"CHATHISTORY LATEST {channel} * {_PAGE}", "BATCH"))
        for question in (f"RECENT {channel} {_MOST}", f"SEARCH {channel} :{SAYS}"):
            lines = await self.reader.ask(f"HISTORY {question}", "HISTORYEND")
            self._note(lines)
            counts = Counter(line.params[-1] for line in lines if line.verb == "HISTORY")
            self.twice += [text for text, count in counts.items() if count > 1]


def read_all(universe: "Universe") -> list[Reading]:
    """Connect each account once more, and let it read what it may."""
    world = universe.world
    readings = []
    for person in universe.people:
        nick = person.first_nick.replace("-p", "-reader")
        reader = Person(world, person.host, person.server, nick, person.account)
        reader.channels = list(person.channels)
        reader.is_talking = False
        reader.host.start(reader.run())
        readings.append(Reading(person, reader))
    if not world.run_until(lambda: all(each.reader.is_there for each in readings), _PATIENCE):
        for each in readings:
            each.failure = "cannot connect and join"
        return readings
    world.run(0.5)
    for each in readings:
        others = [person for person in universe.people if person is not each.person]
        each.reader.host.start(each.read(others))
    if not world.run_until(lambda: all(each.is_done for each in readings), _PATIENCE):
        for each in readings:
            each.failure = each.failure or ("" if each.is_done else "no answer")
    return readings
