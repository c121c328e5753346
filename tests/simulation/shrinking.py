"""Looks for the fewest faults with which a seed still fails in the same way.

A failure after twenty faults says little; mostly two or three of them are needed. This is delta debugging (Zeller and
Hildebrandt, 2002): leave out ever smaller parts of the list as long as the same rule is still broken. The list is data
made from the seed (``faults.py``), so each attempt is a run of the same seed with some of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.simulation.runner import run_seeds
from tests.simulation.universe import Outcome, Setup


def shrink(outcome: Outcome, setup: Setup) -> tuple[int, ...]:
    """Return the numbers of the fewest faults found with which the seed breaks the same rule."""
    rule = outcome.wrong[0].rule

    def fails(numbers: Sequence[int]) -> bool:
        again = next(run_seeds([outcome.seed], replace(setup, only=tuple(numbers), is_verbose=False)))
        return any(each.rule == rule for each in again.wrong)

    return smallest([int(fault.partition(":")[0]) for fault in outcome.faults], fails)


def smallest(numbers: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> tuple[int, ...]:
    """Return a part of the list that still fails, and of which nothing can be left out."""
    kept = list(numbers)
    size = max(1, len(kept) // 2)
    while kept:
        for at in range(0, len(kept), size):
            fewer = kept[:at] + kept[at + size :]
            if fails(fewer):
                kept = fewer
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
    return tuple(kept)
