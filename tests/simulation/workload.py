"""What people do: they talk in bursts, in channels and in private, and change what is to be agreed on."""

import asyncio
import random
from collections.abc import Sequence

from tests.simulation.clients import AWAY, Person

MAIN = "#x"
"""The channel where everybody is."""
CLOSED = "#closed"
"""A channel with a key, which only the first person of each server knows."""
LOCAL = "#local"
"""A channel that stays on its server."""
WANTED = {CLOSED: "+ks secret", LOCAL: "+L"}
SAYS = "says"
"""A word of every message."""
_NEEDS = {CLOSED: "k", LOCAL: "L"}
_ROOMS = 0.2
_BURSTS = (1, 1, 1, 2, 8)
_PRIVATE = 0.3
_AGAIN, _LAST = 0.4, 5
"""How often an agent publishes a fact again, and which of its last ones."""


class Workload:
    """Decides what each person does next."""

    def __init__(self, people: Sequence[Person], changes: float) -> None:
        """``changes``: which part of the acts is no message."""
        self._people = people
        self._changes = changes
        self._count = 0

    async def act(self, person: Person) -> None:
        """Do one thing as a person."""
        chance = person.chance
        if chance.random() < self._changes:
            self._change(person, chance)
            return
        for _ in range(chance.choice(_BURSTS)):
            self._say(person, chance)
            if chance.random() < 0.5:
                await asyncio.sleep(chance.uniform(0, 0.004))
            if person.session is None:
                return

    def _say(self, person: Person, chance: random.Random) -> None:
        target = MAIN
        rooms = [room for room, mode in _NEEDS.items() if mode in _modes_of(person, room)]
        if rooms and chance.random() < _ROOMS:
            target = chance.choice(rooms)
        elif chance.random() < _PRIVATE:
            target = chance.choice([each for each in self._people if each is not person]).first_nick
        person.say(target, f"{person.first_nick} {SAYS} {len(person.said)}")

    def _change(self, person: Person, chance: random.Random) -> None:
        chance.choice(_CHANGES)(person, chance)


class Reporting:
    """What an agent does: it publishes facts, in bursts, and some of them again with another state."""

    def __init__(self) -> None:
        self._count = 0

    async def act(self, person: Person) -> None:
        """Publish some facts."""
        for _ in range(person.chance.choice(_BURSTS)):
            keys = list(person.facts)
            is_again = bool(keys) and person.chance.random() < _AGAIN
            key = person.chance.choice(keys[-_LAST:]) if is_again else f"{person.first_nick}-{len(keys)}"
            self._count += 1
            person.put_fact(key, f"state-{self._count}")


def rooms_of(number: int) -> list[str]:
    """Return the channels that the person of this number on a server joins."""
    return [MAIN, LOCAL, *([f"{CLOSED} secret"] if number == 0 else [])]


def _modes_of(person: Person, room: str) -> str:
    """Return the modes of a room as the person's server has shown them; "" if it is not there."""
    session = person.session
    return "" if session is None or room not in session.joined else session.modes.get(room, "")


def _topic(person: Person, chance: random.Random) -> None:
    person.topics += 1
    person.send(f"TOPIC {MAIN} :topic {person.topics} of {person.first_nick}")


def _mode(person: Person, chance: random.Random) -> None:
    flag = chance.choice("ntC")
    person.send(f"MODE {MAIN} {chance.choice('+-')}{flag}")


def _ban(person: Person, chance: random.Random) -> None:
    person.send(f"MODE {MAIN} {chance.choice('+-')}b nobody{chance.randrange(4)}!*@*")


def _voice(person: Person, chance: random.Random) -> None:
    person.send(f"MODE {MAIN} {chance.choice('+-')}v {person.nick}")


def _rename(person: Person, chance: random.Random) -> None:
    person.send(f"NICK {person.first_nick}{chance.choice(('', 'a', 'b'))}")


def _away(person: Person, chance: random.Random) -> None:
    person.send(f"AWAY :{AWAY}" if chance.random() < 0.5 else "AWAY")


def _redact(person: Person, chance: random.Random) -> None:
    own = [said for said in person.said[-20:] if said.is_receipted and not said.is_taken_back]
    if own:
        said = chance.choice(own)
        said.is_taken_back = True
        person.send(f"REDACT {said.target} {said.msgid}")


def _come_and_go(person: Person, chance: random.Random) -> None:
    channel = f"#side{chance.randrange(2)}"
    is_in = person.session is not None and channel in person.session.joined
    person.send(f"{'PART' if is_in else 'JOIN'} {channel}")


ACTS = ("TOPIC", "MODE", "NICK", "AWAY", "REDACT", "JOIN", "PART", "PRIVMSG")
"""Commands that people send; each person counts what the server shows of their own."""
_CHANGES = (_topic, _mode, _ban, _voice, _rename, _away, _redact, _come_and_go)
