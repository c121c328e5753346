"""Single runs with faults at known points, where a seed would have to be lucky.

Each is a function of a universe whose people say nothing by themselves; it returns what was wrong. They run by
``python -m tests.simulation --scenario NAME``, in a forked child as every run.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.disk import ArmedCrash
from tests.simulation.invariants import Violation, check
from tests.simulation.workload import MAIN

if TYPE_CHECKING:
    from tests.simulation.universe import Universe

_SOON, _SETTLED = 5.0, 60.0
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
    world.network.cut("spark", "thor")
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
    spark.starts_in_trouble = True
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


def _settled(universe: "Universe") -> list[Violation]:
    if not universe.world.run_until(universe.is_settled, _SETTLED):
        return [Violation("links", "not everybody is back")]
    universe.world.run(_SOON)
    return [*check(universe), *universe.complaints()]


SCENARIOS: dict[str, Scenario] = {
    "power-loss-after-receipt": _power_loss_after_receipt,
    "full-disk": _full_disk,
    "start-on-a-full-disk": _start_on_a_full_disk,
    **{
        f"{'power-loss' if power else 'kill'}-{phase}-{name}": partial(_crash_at_commit, phase, f"{name}.db", power)
        for phase, name in (("before", "log"), ("after", "log"), ("before", "history"))
        for power in (False, True)
    },
}
