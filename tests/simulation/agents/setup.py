"""What decides a run with agents, and its faults as data."""

import random
from dataclasses import dataclass

from tests.simulation import faults
from tests.simulation.faults import Fault

NAMES = ("spark", "thor")
KILL_AGENT, RAISE = "kill-agent", "raise"
KINDS = (KILL_AGENT, KILL_AGENT, KILL_AGENT, faults.KILL, faults.POWER, faults.STOP, faults.CUT, faults.CUT, RAISE)
"""What may go wrong. ``raise``: a budget is raised, for which the daemon starts again."""


_LONG_DOWN = 40.0


@dataclass(frozen=True)
class Setup:
    """What decides a run, with the seed."""

    agents: int = 6
    people: int = 2
    """On each server."""
    seconds: float = 1200.0
    """How long people talk and things go wrong."""
    every: float = 60.0
    """The mean seconds between two acts of a person."""
    trouble: float = 60.0
    """The mean seconds between two faults."""
    kinds: tuple[str, ...] = KINDS
    only: tuple[int, ...] | None = None
    is_verbose: bool = False
    is_slow: bool = False
    """Whether links and people look for each other seldom, so that days pass sooner."""


def plan(chance: random.Random, nicks: list[str], setup: Setup) -> list[Fault]:
    """Return the faults of one seed, in the order of their times."""
    planned: list[Fault] = []
    edges = [("spark", "thor"), *((f"{name}-agents", name) for name in NAMES)]
    at = 0.0
    while setup.kinds and (at := at + chance.expovariate(1 / setup.trouble)) < setup.seconds:
        kind, down = chance.choice(setup.kinds), chance.uniform(0.3, _LONG_DOWN)
        if kind == faults.CUT:
            one, other = chance.choice(edges)
            planned.append(Fault(len(planned), at, kind, one, other, seconds=down))
        elif kind in (KILL_AGENT, RAISE):
            planned.append(Fault(len(planned), at, kind, chance.choice(nicks), seconds=down))
        else:
            planned.append(Fault(len(planned), at, kind, chance.choice(NAMES), seconds=down))
    return planned
