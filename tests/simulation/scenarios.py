"""Single runs with faults at known points, where a seed would have to be lucky.

Each is a function of a universe whose people say nothing by themselves; it returns what was wrong. They run by
``python -m tests.simulation --scenario NAME``, in a forked child as every run.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.disk import ArmedCrash
from tests.simulation.invariants import Violation, check
from tests.simulation.workload import ACTS, CLOSED, LOCAL, MAIN, SAYS

if TYPE_CHECKING:
    from tests.simulation.clients import Person
    from tests.simulation.universe import Universe

_MOMENT, _SOON, _SETTLED = 1.0, 5.0, 60.0
Scenario = Callable[["Universe"], list[Violation]]


def _crash_at_commit(phase: str, database: str, with_power: bool, universe: "Universe") -> list[Violation]:
    """A crash right before or after a commit of a message: it is everywhere in the end, once."""
    world, spark, ori = universe.world, universe.servers[0], universe.people[0]
    spark.drive.armed = ArmedCrash(phase, 0, with_power, database)
    said = ori.say(MAIN, "hello")
    if not world.run_until(lambda: spark.lives > 0, _SOON, look=0.001):
        return [Violation("scenario", "the crash never came")]
    if said.is_receipted:
        return [Violation("scenario", "the receipt came before the commit")]
    return _settled(universe)


def _power_loss_after_receipt(universe: "Universe") -> list[Violation]:
    """A receipt that a peer cannot know of is worth as much as any."""
    world, spark, ori = universe.world, universe.servers[0], universe.people[0]
    for pair in (("spark", "thor"), ("thor", "spark")):
        world.network.cut(*pair)
    said = ori.say(MAIN, "hello")
    if not world.run_until(lambda: said.is_receipted, _SOON, look=0.001):
        return [Violation("scenario", "there was no receipt")]
    spark.crash(with_power=True)
    world.network.mend_all()
    return _settled(universe)


def _full_disk(universe: "Universe") -> list[Violation]:
    """While the disk is full, people hear each other and get no receipt; it comes when there is room."""
    world, spark, ori = universe.world, universe.servers[0], universe.people[0]
    spark.drive.begin(0, "full", world.now + _SOON)
    said = ori.say(MAIN, "hello")
    world.run(_SOON)
    heard = [person.first_nick for person in universe.people if said.text in person.heard.values()]
    if said.is_receipted or len(heard) < len(universe.people):
        return [Violation("scenario", f"receipted: {said.is_receipted}, heard by {heard}")]
    spark.drive.mend_all()
    if not world.run_until(lambda: said.is_receipted, _SOON):
        return [Violation("scenario", "the receipt did not come when there was room")]
    return _settled(universe)


def _start_on_a_full_disk(universe: "Universe") -> list[Violation]:
    """What is said at a server that was started on a full disk is everywhere once there is room."""
    world, spark, ori = universe.world, universe.servers[0], universe.people[0]
    spark.drive.begin(0, "full", world.now + _SOON)
    spark.pause = 0.1
    spark.crash(with_power=False)
    world.run(_SOON)
    spark.drive.mend_all()
    if not world.run_until(lambda: spark.is_running and ori.is_there, _SETTLED):
        return [Violation("scenario", "the server is not there again")]
    said = ori.say(MAIN, "hello")
    if not world.run_until(lambda: said.is_receipted, _SOON):
        return [Violation("scenario", "there was no receipt")]
    return _settled(universe)


def _each_act(universe: "Universe") -> list[Violation]:
    """Each command of the workload has its effect once, as people see it."""
    do_each_act(universe)
    lacking = [verb for verb in ACTS if not universe.people[0].done[verb]]
    return _settled(universe) if not lacking else [Violation("scenario", f"nobody was shown {lacking}")]


def do_each_act(universe: "Universe") -> None:
    """Let the first person do everything that people do, and the first agent publish facts; wait for the effects."""
    world, (ori, *others), agent = universe.world, universe.people, universe.agents[0]
    for person in universe.people:
        person.send(*(f"PART {name.split()[0]}" for name in person.channels))
    world.run(_MOMENT)
    for person in universe.people:  # one after the other, because the first one in a channel has its ranks
        person.send(*(f"JOIN {name}" for name in person.channels))
        world.run(_MOMENT)
    if not world.run_until(lambda: _has_modes(ori), _SOON):
        raise TimeoutError("the first person could not set the modes of its rooms")
    for number, target in enumerate((MAIN, MAIN, MAIN, CLOSED, LOCAL, others[-1].first_nick)):
        ori.say(target, f"{SAYS} {number}")
    for key, state in (("a", "begun"), ("b", "begun"), ("a", "done")):
        agent.put_fact(key, state)
        world.run(_MOMENT)
    if not world.run_until(lambda: all(said.is_receipted for said in ori.said), _SOON):
        raise TimeoutError("there was no receipt")
    ori.said[0].is_taken_back = True
    for line in (f"REDACT {MAIN} {ori.said[0].msgid}", f"TOPIC {MAIN} :a topic", f"MODE {MAIN} +v {ori.nick}"):
        ori.send(line)
    ori.send(
        "AWAY :at lunch", "AWAY", "JOIN #side0", "PART #side0", f"NICK {ori.first_nick}a", f"NICK {ori.first_nick}"
    )
    world.run(_SOON)


def _has_modes(person: "Person") -> bool:
    """Return whether the modes of all rooms are as this person wants them."""
    modes = {} if person.session is None else person.session.modes
    return all(set(wanted.split()[0]) <= {"+", *modes.get(room, "")} for room, wanted in person.wanted_modes.items())


def _settled(universe: "Universe") -> list[Violation]:
    if not universe.world.run_until(universe.is_settled, _SETTLED):
        return [Violation("links", "not everybody is back")]
    universe.world.run(_SOON)
    return [*check(universe), *universe.complaints()]


SCENARIOS: dict[str, Scenario] = {
    "power-loss-after-receipt": _power_loss_after_receipt,
    "full-disk": _full_disk,
    "start-on-a-full-disk": _start_on_a_full_disk,
    "each-act": _each_act,
    **{
        f"{'power-loss' if power else 'kill'}-{phase}-{name}": partial(_crash_at_commit, phase, f"{name}.db", power)
        for phase, name in (("before", "log"), ("after", "log"), ("before", "history"))
        for power in (False, True)
    },
}
