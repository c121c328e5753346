"""One seed: servers, people, what goes wrong, and what must be true in the end."""

import logging
import random
import shutil
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from culture.protocol.vocabulary import UserClass
from tests.simulation import faults
from tests.simulation.clients import Person
from tests.simulation.disk import is_disk_error
from tests.simulation.faults import Fault
from tests.simulation.hostile import HostilePeer
from tests.simulation.invariants import Violation, check
from tests.simulation.network import PEOPLE
from tests.simulation.queues import check_bounds, most_waiting
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.servers import SimServer
from tests.simulation.unharmed import harm
from tests.simulation.workload import ACTS, CLOSED, LOCAL, MAIN, WANTED, Reporting, Workload, rooms_of
from tests.simulation.world import Host, World

_PATIENCE = 60.0
_FULL_TRUST = 0.75
"""Which part of the seeds has full trust on all links."""
_LOOK = 0.1
"""Seconds between two looks at the queues."""
_SHOWN = 5
_ROOM = 1 << 18
_GIVES_UP = 10.0
"""``limits.shutdown_timeout``: seconds that a server has to stop."""
NAMES = ("spark", "thor", "odin", "loki", "freya")


@dataclass(frozen=True)
class Setup:
    """What decides a run, with the seed."""

    servers: int = 2
    people: int = 2
    """On each server."""
    seconds: float = 20.0
    """How long things go wrong."""
    kinds: tuple[str, ...] = faults.KINDS
    only: tuple[int, ...] | None = None
    """The numbers of the faults that happen; None for all."""
    is_verbose: bool = False
    scenario: str = ""
    """One of ``SCENARIOS`` in the place of everything that the seed would bring."""
    is_hostile: bool = False
    """Whether one more peer lies (``hostile.py``)."""


@dataclass
class Outcome:
    """What came of a seed."""

    seed: int
    wrong: list[Violation]
    digest: str
    virtual: float
    steps: int
    faults: list[str]
    figures: dict[str, int] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)


class Universe:
    """The servers and people of one seed."""

    def __init__(self, seed: int, setup: Setup, folder: Path) -> None:
        self.seed, self.setup, self.folder = seed, setup, folder
        self.world = World(seed, setup.is_verbose)
        chance = self.world.generator("universe")
        names = NAMES[: setup.servers]
        self.edges: list[faults.Edge] = [(one, names[(at + 1) % len(names)]) for at, one in enumerate(names)]
        if len(names) < 3:
            self.edges = self.edges[: len(names) - 1]
        self.servers = [self._server(name, chance.choice((0.0, 0.0, chance.uniform(-2, 2)))) for name in names]
        self.most_skew = max(server.machine.skew for server in self.servers)
        """Seconds by which any clock was ever ahead."""
        self.are_always_on = chance.random() < 0.5
        self.has_full_trust = chance.random() < _FULL_TRUST or bool(setup.scenario) or setup.is_hostile
        self.is_restricted = False
        if not self.has_full_trust:
            self._distrust(*chance.choice(self.edges), chance.choice(("no_authority", "restricted")))
        host = self.world.boot(self.world.machine(PEOPLE))
        self.world.network.address_of(PEOPLE)
        self.people = [self._person(host, server, number) for server in self.servers for number in range(setup.people)]
        # Who asks for the history is shown none; the others are shown some on each JOIN.
        for person in self.people:
            person.asks = chance.random() < 0.5
        self.workload = Workload(self.people, changes=chance.choice((0.0, 0.2, 0.4)))
        for person in self.people:
            person.act = self.workload.act
        self.agents = [self._agent(host, server) for server in self.servers]
        everything = faults.plan(self.world.generator("faults"), names, self.edges, setup.seconds, setup.kinds)
        self.faults = [each for each in everything if setup.only is None or each.number in setup.only]
        self.overflows: list[Violation] = []
        self.most_waiting = 0
        """How many bytes ever waited for one client."""
        self._limit(self.world.generator("limits"))
        self.hostile = HostilePeer(self) if setup.is_hostile else None

    def _limit(self, chance: random.Random) -> None:
        """Give connections small buffers in some worlds, so that clients who do not read are too slow."""
        self.world.network.buffer = chance.choice((1 << 16, 1 << 16, 4096, 1024))
        send_queue = chance.choice((self.servers[0].send_queue, 4096))
        for server in self.servers:
            server.send_queue = send_queue

    def _watch(self) -> None:
        """Look at the queues now and again."""
        self.overflows += check_bounds(self.servers)
        self.most_waiting = max(self.most_waiting, most_waiting(self.servers))
        self.world.call_later(_LOOK, self._watch)

    def _distrust(self, one: str, other: str, trust: str) -> None:
        """Give both ends of a link another trust than full."""
        self.is_restricted = trust == "restricted"
        channels = (MAIN,) if self.is_restricted else ()
        self.server(one).trust[other] = self.server(other).trust[one] = (trust, channels)

    def _server(self, name: str, skew: float) -> SimServer:
        peers = {two: True for one, two in self.edges if one == name}
        peers |= {one: False for one, two in self.edges if two == name}
        return SimServer(self.world, name, self.folder / name, peers, skew)

    def _person(self, host: Any, server: SimServer, number: int) -> Person:
        nick = f"{server.name}-p{number}"
        server.add_account(f"p{number}", UserClass.HUMAN, self.are_always_on)
        person = Person(self.world, host, server, nick, f"p{number}")
        person.channels = rooms_of(number)
        person.wanted_modes = {room: modes for room, modes in WANTED.items() if number == 0}
        return person

    def _agent(self, host: Any, server: SimServer) -> Person:
        server.add_account("a0", UserClass.AGENT, always_on=False)
        agent = Person(self.world, host, server, f"{server.name}-a0", "a0")
        agent.act = Reporting().act
        return agent

    @property
    def everybody(self) -> list[Person]:
        """Return people and agents."""
        return [*self.people, *self.agents]

    def server(self, name: str) -> SimServer:
        """Return the server of this name."""
        return next(each for each in self.servers if each.name == name)

    def are_linked(self) -> bool:
        """Return whether all links are up and in sync."""
        return all(server.is_linked() for server in self.servers)

    def begin(self) -> bool:
        """Start all servers, link them, and let everybody come; return whether the servers have linked."""
        for server in self.servers:
            server.start()
        if not self.world.run_until(self.are_linked, _PATIENCE):
            return False
        for person in self.everybody:
            person.host.start(person.run())
        if self.hostile is not None:
            self.hostile.start()
        self.world.run(2)
        return True

    def is_settled(self) -> bool:
        """Return whether all servers are up and linked, and everybody is there."""
        return self.are_linked() and all(person.is_there for person in self.everybody)

    def complaints(self) -> list[Violation]:
        """Return what programs did that must never happen."""
        return [
            Violation("complaint", f"{each.at} {each.host} {each.kind}: {each.text}") for each in self.world.complaints
        ]

    def run(self) -> list[Violation]:
        """Run everything; return what was wrong."""
        if self.setup.scenario:
            for person in self.everybody:
                person.is_talking = False
        if not self.begin():
            return [Violation("start", "the servers do not link at the start"), *self.complaints()]
        if self.setup.scenario:
            return SCENARIOS[self.setup.scenario](self)
        self._rage()
        return self._settle()

    def _rage(self) -> None:
        begin = self.world.now
        self._watch()
        for fault in self.faults:
            self.world.run(max(0.0, begin + fault.at - self.world.now))
            self._cause(fault)
        self.world.run(max(0.0, begin + self.setup.seconds - self.world.now))

    def _cause(self, fault: Fault) -> None:
        world, network = self.world, self.world.network
        world.remark("fault", str(fault))
        server = self.server(fault.where)
        if pairs := faults.cuts(fault):
            for pair in pairs:
                network.cut(*pair)
            world.call_later(fault.seconds, lambda: [network.mend(*pair) for pair in pairs] and None)
        elif fault.kind == faults.RESET:
            alive = [sock for sock in network.connections if sock.is_open and sock.error is None]
            if alive:
                alive[fault.skip % len(alive)].reset()
                world.happened[fault.kind] += 1
        elif fault.kind == faults.JUMP:
            server.machine.skew += fault.seconds
            self.most_skew = max(self.most_skew, server.machine.skew)
            world.happened[fault.kind] += 1
        elif fault.kind in (faults.FULL, faults.SYNC):
            server.trouble(fault.number, fault.kind, fault.seconds)
        elif server.is_up:  # or on its way: also a start and a recovery can be interrupted
            self._hurt(server, fault)

    def _hurt(self, server: SimServer, fault: Fault) -> None:
        server.pause = fault.seconds
        if fault.kind == faults.AT_COMMIT:
            server.drive.armed = faults.armed(fault)
        elif fault.kind == faults.STOP:
            server.stop()
        else:
            server.crash(with_power=fault.kind == faults.POWER)

    def _settle(self) -> list[Violation]:
        """Mend everything, wait until all is quiet, and ask."""
        world = self.world
        world.network.mend_all()
        world.network.buffer = _ROOM  # long answers follow, which nobody reads slowly
        for server in self.servers:
            server.drive.mend_all()
        world.run(0.01)
        wrong: list[Violation] = []
        if not world.run_until(lambda: all(server.is_up for server in self.servers), 30):
            wrong.append(Violation("start", f"not up again: {[s.name for s in self.servers if not s.is_up]}"))
        if not world.run_until(self.are_linked, 150):
            wrong.append(Violation("links", "the servers do not link again"))
        world.run(3)
        if self.hostile is not None:
            self.hostile.is_talking = False
        for person in self.everybody:
            person.is_talking = False
        if not world.run_until(self.is_settled, 90):
            missing = [person.first_nick for person in self.everybody if not person.is_there]
            wrong.append(Violation("links", f"not everybody is back: {missing}"))
        world.run(5)
        wrong += self.overflows[:_SHOWN]
        if not wrong:
            wrong += check(self)
            wrong += [Violation("hostile", text) for text in (harm(self, self.hostile) if self.hostile else ())]
        world.collect()
        return wrong + self.complaints()


_GIVEN_UP = ("%d messages could not be kept", "%d changes of the federation's log could not be written")


class LogWatch(logging.Handler):
    """Takes everything that programs log; an ERROR is a complaint, but for one that tells of a disk in trouble.

    It does so in its own words, or is one of those with which a server that is stopped gives up what cannot be written
    when its time is over: the log of the links first, then the history, which keeps nothing that the log lacks
    (decision 33).
    """

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def _has_trouble(self, host: Host | None) -> bool:
        return (
            host is not None and host.disk is not None and self._world.now < host.disk.drive.trouble_until + _GIVES_UP
        )

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            text = f"{text}\n{''.join(traceback.format_exception(*record.exc_info))}"
        host = self._world.host
        self._world.remark("log", host.name if host else "", record.levelname, text)
        is_excused = is_disk_error(text) or record.msg in _GIVEN_UP
        if record.levelno >= logging.ERROR and not (is_excused and self._has_trouble(host)):
            self._world.complain(host, f"log of {record.name}", text)


def run_seed(seed: int, setup: Setup, folder: Path) -> Outcome:
    """Run one seed in this process, which should run nothing else afterwards (see ``runner.py``)."""
    universe = Universe(seed, setup, folder)
    world = universe.world
    root = logging.getLogger()
    root.handlers[:] = [LogWatch(world)]
    root.setLevel(logging.INFO)
    try:
        wrong = universe.run()
    except Exception:
        wrong = [Violation("simulator", traceback.format_exc())]
    shutil.rmtree(folder, ignore_errors=True)
    said: Sequence[Any] = [said for person in universe.people for said in person.said]
    figures = {
        "said": len(said),
        "receipted": sum(each.is_receipted for each in said),
        "closed": sum(each.is_receipted and each.target == CLOSED for each in said),
        "local": sum(each.is_receipted and each.target == LOCAL for each in said),
        "facts": sum(
            put.kept is not None for agent in universe.agents for puts in agent.facts.values() for put in puts
        ),
        "redacted": sum(each.redacted_at is not None for each in said),
        "lives": sum(server.lives + 1 for server in universe.servers),
        "sessions": sum(person.sessions for person in universe.people),
        "waited": universe.most_waiting,
    }
    acts = sum((person.done for person in universe.people), Counter[str]())
    figures |= {f"fault {kind}": world.happened[kind] for kind in sorted({*faults.KINDS})}
    figures |= {f"act {verb}": acts[verb] for verb in ACTS}
    if universe.hostile is not None:
        figures |= {"attacks": universe.hostile.attacks, "attacked": universe.hostile.links}
    trace = [" ".join(map(str, each)) for each in world.trace]
    virtual = round(world.now - 1000, 1)
    return Outcome(seed, wrong, world.digest, virtual, world.steps, list(map(str, universe.faults)), figures, trace)
