"""Faults as data: what goes wrong in a universe, when, and for how long.

The list is made from the seed before anything runs. Each fault ends by itself, so any part of the list can be run
alone, and a shorter list that fails in the same way explains a failure better (``shrinking.py``).
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.simulation.disk import ArmedCrash
from tests.simulation.network import PEOPLE

Edge = tuple[str, str]

CUT, ONE_WAY, RESET = "cut", "one-way", "reset"
KILL, POWER, STOP, AT_COMMIT = "kill", "power", "stop", "at-commit"
FULL, SYNC, JUMP = "full", "sync", "jump"
CLIENTS = "clients"
"""A cut between a server and all its clients, in one direction or both."""

CRASHES = (KILL, POWER, STOP, AT_COMMIT)
KINDS = (CUT, ONE_WAY, RESET, KILL, POWER, STOP, AT_COMMIT, AT_COMMIT, FULL, SYNC, JUMP, CLIENTS)
"""What may go wrong; what stands here twice does so twice as often."""

_LONGEST_CUT = 9.0
_BETWEEN_CLIENTS = (1.0, 12.0)
"""The least and the most seconds between two cuts from clients."""
_LONGEST_DOWN = 6.0
_LONGEST_TROUBLE = 5.0
_LONGEST_JUMP = 60.0
_MOST_SKIPPED = 6


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong."""

    number: int
    """Its place in the list of its seed."""
    at: float
    """Seconds after everybody is there."""
    kind: str
    where: str
    """The server; of a cut also the other one."""
    other: str = ""
    seconds: float = 0.0
    """How long it lasts; of a crash how long the server is down; of a clock how far it jumps."""
    with_power: bool = False
    phase: str = ""
    """Of a crash at a commit ``before`` or ``after``; of a cut from clients ``both`` directions, ``to`` or ``from``."""
    skip: int = 0
    """Of a crash at a commit how many commits come before it; of a reset which connection."""

    def __str__(self) -> str:
        """Return one line that describes it."""
        words: list[Any] = [f"{self.number}: at {self.at:.3f}", self.kind, self.where, self.other]
        if self.kind == AT_COMMIT:
            words += [self.phase, f"after {self.skip} others", "with power" if self.with_power else "without power"]
        return " ".join(str(word) for word in [*words, f"{self.seconds:.2f} s"] if word)


def plan(
    chance: random.Random, servers: Sequence[str], edges: Sequence[Edge], seconds: float, kinds: Sequence[str] = KINDS
) -> list[Fault]:
    """Return the faults of one seed, in the order of their times."""
    faults: list[Fault] = []
    at = 0.0
    of_servers = [kind for kind in kinds if kind != CLIENTS]
    while of_servers and (at := at + chance.uniform(0.1, 2.5)) < seconds:
        faults.append(_fault(chance, len(faults), at, chance.choice(of_servers), servers, edges))
    at = 0.0
    while CLIENTS in kinds and (at := at + chance.uniform(*_BETWEEN_CLIENTS)) < seconds:
        length, phase = chance.uniform(0.2, _LONGEST_CUT), chance.choice(("both", "to", "from"))
        faults.append(Fault(len(faults), at, CLIENTS, chance.choice(servers), seconds=length, phase=phase))
    return sorted(faults, key=lambda fault: fault.at)


def cuts(fault: Fault) -> list[Edge]:
    """Return from where to where nothing gets through during a fault."""
    other = PEOPLE if fault.kind == CLIENTS else fault.other
    there, back = (fault.where, other), (other, fault.where)
    if fault.kind == CUT or (fault.kind == CLIENTS and fault.phase == "both"):
        return [there, back]
    if fault.kind == ONE_WAY or (fault.kind == CLIENTS and fault.phase == "to"):
        return [there]
    return [back] if fault.kind == CLIENTS else []


def _fault(
    chance: random.Random, number: int, at: float, kind: str, servers: Sequence[str], edges: Sequence[Edge]
) -> Fault:
    where = chance.choice(servers)
    if kind in (CUT, ONE_WAY):
        one, other = chance.choice(edges)
        if chance.random() < 0.5:
            one, other = other, one
        return Fault(number, at, kind, one, other, seconds=chance.uniform(0.2, _LONGEST_CUT))
    if kind == RESET:
        return Fault(number, at, kind, where, skip=chance.randrange(64))
    if kind in (FULL, SYNC):
        return Fault(number, at, kind, where, seconds=chance.uniform(0.1, _LONGEST_TROUBLE))
    if kind == JUMP:
        return Fault(number, at, kind, where, seconds=chance.uniform(-_LONGEST_JUMP, _LONGEST_JUMP))
    down = chance.uniform(0.1, _LONGEST_DOWN)
    phase, skip, with_power = chance.choice(("before", "after")), chance.randrange(_MOST_SKIPPED), chance.random() < 0.5
    return Fault(number, at, kind, where, seconds=down, with_power=with_power, phase=phase, skip=skip)


def armed(fault: Fault) -> ArmedCrash:
    """Return the crash that a fault arms on a disk."""
    return ArmedCrash(fault.phase, fault.skip, fault.with_power)
