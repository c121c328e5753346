"""``python -m tests.simulation``: run seeds, replay one, shrink one."""

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tests.simulation import faults
from tests.simulation.ordering import number_objects
from tests.simulation.runner import run_seeds
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.shrinking import shrink
from tests.simulation.universe import Outcome, Setup

_SHOWN = 6
_LONGEST = 1500


def main() -> int:
    """Run what the command line says; return 1 if anything was wrong."""
    options = _options()
    number_objects()
    kinds = tuple(options.kinds.split(",")) if options.kinds else ()
    only = None if options.faults is None else tuple(int(each) for each in options.faults.split(",") if each)
    setup = Setup(
        options.servers,
        options.people,
        options.seconds,
        kinds,
        only,
        options.verbose,
        options.scenario,
        options.hostile,
    )
    began, failed, virtual, count = time.monotonic(), 0, 0.0, 0
    sums: Counter[str] = Counter()
    for outcome in run_seeds(range(options.seed, options.seed + options.count), setup, options.jobs):
        count += 1
        virtual += outcome.virtual
        sums.update(outcome.figures)
        _show(outcome, setup, options)
        if outcome.wrong:
            failed += 1
            if not options.keep_going:
                break
    took = time.monotonic() - began
    print(
        f"{count} seeds, {failed} wrong, {took:.1f} s, {virtual:.0f} virtual s, {60 * count / took:.0f} seeds a minute",
        flush=True,
    )
    if options.figures is not None:
        figures = {"seeds": count, "wrong": failed, "virtual_seconds": round(virtual), **sums}
        options.figures.write_text(json.dumps(figures))
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--people", type=int, default=2, help="on each server")
    parser.add_argument("--seconds", type=float, default=20.0, help="virtual seconds in which things go wrong")
    parser.add_argument("--kinds", default=",".join(faults.KINDS), help="kinds of faults")
    parser.add_argument("--hostile", action="store_true", help="one more peer, which lies")
    parser.add_argument("--faults", help="only these faults of the seed, by their numbers")
    parser.add_argument("--jobs", type=int, default=1, help="seeds at a time")
    parser.add_argument("--verbose", action="store_true", help="print what happened")
    parser.add_argument("--shrink", action="store_true", help="look for the fewest faults with which a seed fails")
    parser.add_argument("--keep-going", action="store_true", help="do not end at the first failure")
    parser.add_argument("--scenario", default="", choices=["", *SCENARIOS], help="a known course of events")
    parser.add_argument("--figures", type=Path, help="a file for the sums of all seeds, as JSON")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each seed")
    return parser.parse_args()


def _show(outcome: Outcome, setup: Setup, options: argparse.Namespace) -> None:
    for line in outcome.trace:
        print(f"  {line[:_LONGEST]}")
    if options.json:
        figures = {"seed": outcome.seed, "digest": outcome.digest, "steps": outcome.steps, **outcome.figures}
        print(json.dumps({**figures, "virtual": outcome.virtual, "wrong": [list(each) for each in outcome.wrong]}))
    elif outcome.wrong or options.count == 1:
        print(f"seed {outcome.seed}: digest {outcome.digest}, {outcome.steps} steps, {outcome.figures}")
    if not outcome.wrong:
        return
    for rule, text in outcome.wrong[:_SHOWN]:
        print(f"  WRONG {rule}: {text[:_LONGEST]}")
    if options.shrink:
        setup = replace(setup, only=shrink(outcome, setup))
    for fault in outcome.faults:
        if setup.only is None or int(fault.partition(":")[0]) in setup.only:
            print(f"  fault {fault}")
    print(f"  replay: {replay_line(outcome.seed, setup)}", flush=True)


def replay_line(seed: int, setup: Setup) -> str:
    """Return the command that runs a seed again."""
    default = Setup()
    words = [".venv/bin/python -m tests.simulation", f"--seed {seed}", f"--servers {setup.servers}"]
    if setup.people != default.people:
        words.append(f"--people {setup.people}")
    if setup.seconds != default.seconds:
        words.append(f"--seconds {setup.seconds:g}")
    if setup.kinds != default.kinds:
        words.append(f"--kinds {','.join(setup.kinds)}")
    if setup.scenario:
        words.append(f"--scenario {setup.scenario}")
    if setup.is_hostile:
        words.append("--hostile")
    if setup.only is not None:
        words.append(f"--faults {','.join(map(str, setup.only)) or ','}")
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(main())
