"""One seed: two servers, their agents, people, what goes wrong, and how all come to rest."""

import logging
import os
import resource
import shutil
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from culture.config.agents import TrustConfig
from culture.config.links import Federation
from culture.protocol.vocabulary import UserClass
from tests.simulation import faults
from tests.simulation.agents.daemons import SimAgent
from tests.simulation.agents.invariants import check
from tests.simulation.agents.ledger import Ledger
from tests.simulation.agents.models import CRASH, FAILURE
from tests.simulation.agents.people import Colleague
from tests.simulation.agents.setup import KILL_AGENT, NAMES, Setup, plan
from tests.simulation.clients import Person
from tests.simulation.faults import Fault
from tests.simulation.invariants import Violation
from tests.simulation.servers import SimServer
from tests.simulation.universe import Outcome
from tests.simulation.workload import MAIN
from tests.simulation.world import World

_ROUNDS = 100
_ROUND = 45.0
_MOST_STEPS = 500
"""Steps in a second, above which something never waits."""
_CLEAN_EVERY = 4 * 3600.0


@dataclass
class AgentUniverse:
    """The servers, agents and people of one seed."""

    seed: int
    setup: Setup
    folder: Path
    ledger: Ledger = field(default_factory=Ledger)
    is_calm: bool = False
    clean_at: float = 0.0
    """When garbage is collected next."""

    def __post_init__(self) -> None:
        self.world = World(self.seed, self.setup.is_verbose)
        self.world.most_steps += round(_MOST_STEPS * self.setup.seconds)
        self.chance = self.world.generator("agents")
        self.servers = [self._server(name) for name in NAMES]
        self.agents = [self._agent(number) for number in range(self.setup.agents)]
        for agent in self.agents:
            agent.others = [other.nick for other in self.agents if other is not agent]
        host = self.world.boot(self.world.machine("people"))
        self.world.network.address_of("people")
        self.people: list[Person] = []
        for server in self.servers:
            for number in range(self.setup.people):
                server.add_account(f"p{number}", UserClass.HUMAN, True)
                person = Person(self.world, host, server, f"{server.name}-p{number}", f"p{number}")
                person.channels = [MAIN]
                if self.setup.is_slow:
                    person.pace, person.silent, person.dead = (20.0, 40.0), 90.0, 200.0
                self.people.append(person)
        nicks = [agent.nick for agent in self.agents]
        self.colleagues = [Colleague(each, nicks, self.setup.every, lambda: not self.is_calm) for each in self.people]
        everything = plan(self.world.generator("faults"), nicks, self.setup)
        self.faults = [each for each in everything if self.setup.only is None or each.number in self.setup.only]

    def _server(self, name: str) -> SimServer:
        peers = {"thor": True} if name == "spark" else {"spark": False}
        server = SimServer(self.world, name, self.folder / name, peers, 0.0)
        if self.setup.is_slow:
            server.settings["federation"] = Federation(ping=30.0, timeout=90.0)
        return server

    def _agent(self, number: int) -> SimAgent:
        server = self.servers[number % len(self.servers)]
        name, chance = f"a{number}", self.chance
        server.add_account(name, UserClass.AGENT, True, password=f"token of {name}")
        budget = chance.choice((None, None, 3_000, 12_000))
        agent = SimAgent(
            self.world, server, f"{server.name}-{name}", self.folder / f"agent-{name}", self.ledger, budget
        )
        agent.has_judge = chance.random() < 0.5
        if chance.random() < 0.5:
            action = chance.choice(("pause", "deny", "abort"))
            agent.trust = TrustConfig(timeout=chance.choice((60.0, 600.0)), timeout_action=action)
        return agent

    def run(self) -> list[Violation]:
        """Run everything; return what was wrong."""
        world = self.world
        for server in self.servers:
            server.start()
        if not world.run_until(lambda: all(server.is_linked() for server in self.servers), 120):
            return [Violation("start", "the servers do not link")]
        for person in self.people:
            person.host.start(person.run())
        for agent in self.agents:
            agent.start()
        if not world.run_until(self._are_there, 120, look=1.0):
            return [Violation("start", f"not there: {[each.nick for each in self.agents if not each.is_ready]}")]
        for colleague in self.colleagues:
            colleague.person.host.start(colleague.live())
        begin = self.clean_at = world.now
        for fault in self.faults:
            self._run_until(begin + fault.at)
            self._cause(fault)
        self._run_until(begin + self.setup.seconds)
        return [*self._settle(), *self.ledger.wrong, *self._complaints()]

    def _run_until(self, end: float) -> None:
        """Let time pass; garbage is collected at times of the world's, as it may have something to do."""
        while self.setup.is_slow and self.clean_at < end:
            self.world.run(max(0.0, self.clean_at - self.world.now))
            self.clean_at += _CLEAN_EVERY
            self.world.collect()
        self.world.run(max(0.0, end - self.world.now))

    def _are_there(self) -> bool:
        return all(agent.is_ready for agent in self.agents) and all(person.is_there for person in self.people)

    def _are_at_rest(self) -> bool:
        return not any(agent.why_busy() for agent in self.agents)

    def _cause(self, fault: Fault) -> None:
        world, network = self.world, self.world.network
        world.remark("fault", str(fault))
        agent = next((each for each in self.agents if each.nick == fault.where), None)
        server = next((each for each in self.servers if each.name == fault.where), None)
        if fault.kind == faults.CUT:
            both = ((fault.where, fault.other), (fault.other, fault.where))
            for pair in both:
                network.cut(*pair)
            world.call_later(fault.seconds, lambda: [network.mend(*pair) for pair in both] and None)
        elif agent is not None and agent.daemon is not None:
            agent.pause = fault.seconds
            if fault.kind == KILL_AGENT:
                agent.kill()
            elif agent.budget is not None and agent.is_ready:
                agent.budget += 6_000
                agent.stop()
        elif server is not None and server.is_running:
            server.pause = fault.seconds
            if fault.kind == faults.STOP:
                server.stop()
            else:
                server.crash(with_power=fault.kind == faults.POWER)

    def _settle(self) -> list[Violation]:
        """Mend everything, let all agents go on, wait until they rest, and look."""
        world = self.world
        self.is_calm = True
        world.network.mend_all()
        for agent in self.agents:
            agent.habits.calm()
        ready = world.run_until(
            lambda: all(server.is_linked() for server in self.servers) and self._are_there(), 300, look=1.0
        )
        if not ready:
            missing = [each.nick for each in self.agents if not each.is_ready]
            return [Violation("links", f"not everybody is back: {missing}")]
        for colleague, agent in zip(self.colleagues * len(self.agents), self.agents, strict=False):
            colleague.give(agent.nick, [agent.nick])
        world.run(10)
        for _ in range(_ROUNDS):
            self._help()
            if world.run_until(self._are_at_rest, _ROUND, look=2.0):
                return check(self)
        busy = {agent.nick: why for agent in self.agents if (why := agent.why_busy())}
        return [Violation("rest", f"not at rest after {_ROUNDS * _ROUND:.0f} s: {busy}")]

    def _help(self) -> None:
        """Remove what agents wait for."""
        colleague = self.colleagues[0]
        for agent in self.agents:
            why = agent.why_busy()
            if "over budget" in why:
                agent.budget, agent.pause = None, 1.0
                agent.stop()
            elif "paused" in why or "held" in why:
                colleague.steer(agent.nick, "resume")
            elif "loop guard" in why:
                colleague.steer(agent.nick, "go on")

    def _complaints(self) -> list[Violation]:
        return [
            Violation("complaint", f"{each.at} {each.host} {each.kind}: {each.text}") for each in self.world.complaints
        ]


class _Log(logging.Handler):
    """Takes everything that programs log; an ERROR is a complaint unless a model's planned failure is its cause."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            text = f"{text}\n{''.join(traceback.format_exception(*record.exc_info))}"
        host = self._world.host
        self._world.remark("log", host.name if host else "", record.levelname, text)
        if record.levelno >= logging.ERROR and not _is_planned(text):
            self._world.complain(host, f"log of {record.name}", text)


def _is_planned(text: str) -> bool:
    return FAILURE in text or f"exited with code {CRASH};" in text


def run_seed(seed: int, setup: Setup, folder: Path) -> Outcome:
    """Run one seed in this process, which should run nothing else afterwards."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    os.environ["CULTURE_HOME"] = str(folder / "home")
    began = time.monotonic()
    universe = AgentUniverse(seed, setup, folder)
    world = universe.world
    root = logging.getLogger()
    root.handlers[:] = [_Log(world)]
    root.setLevel(logging.INFO)
    try:
        wrong = universe.run()
    except Exception:
        wrong = [Violation("simulator", traceback.format_exc())]
    shutil.rmtree(folder, ignore_errors=True)
    figures = figures_of(universe)
    figures["memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    figures["processor_ms"] = round(1000 * time.process_time())
    figures["real_ms"] = round(1000 * (time.monotonic() - began))
    trace = [" ".join(map(str, each)) for each in world.trace]
    virtual = round(world.now - 1000, 1)
    return Outcome(seed, wrong, world.digest, virtual, world.steps, list(map(str, universe.faults)), figures, trace)


def figures_of(universe: AgentUniverse) -> dict[str, int]:
    """Return what a run has counted."""
    ledger = universe.ledger
    jobs = [job for colleague in universe.colleagues for job in colleague.jobs]
    return {
        "jobs": len(jobs),
        "receipted": sum(job.said.is_receipted for job in jobs),
        "prompts": len(ledger.given),
        "repeated": sum(part.is_repeated for given in ledger.given for part in given.parts),
        "texts": sum(len(given.texts) for given in ledger.given),
        "questions": len(ledger.asked),
        "answered": sum(asked.answer is not None for asked in ledger.asked),
        "whispers": ledger.whispers,
        "chains": sum(part.chain > 0 for given in ledger.given for part in given.parts),
        "kills": sum(len(agent.kills) for agent in universe.agents),
        "server_lives": sum(server.lives + 1 for server in universe.servers),
        "tokens": sum(agent.spent for agent in universe.agents),
    }
