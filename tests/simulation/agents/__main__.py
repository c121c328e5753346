"""``python -m tests.simulation.agents``: run seeds with agents, replay one, or run a week."""

import argparse
import json
import sys
import time
from pathlib import Path

from tests.simulation.agents.setup import KINDS, Setup
from tests.simulation.agents.universe import run_seed
from tests.simulation.ordering import number_objects
from tests.simulation.runner import run_seeds

_DAY = 86400.0
_SHOWN = 6
_LONGEST = 2500


def main() -> int:
    """Run what the command line says; return 1 if anything was wrong."""
    options = _options()
    number_objects()
    only = None if options.faults is None else tuple(int(each) for each in options.faults.split(",") if each)
    setup = Setup(
        options.agents,
        options.people,
        options.days * _DAY or options.seconds,
        options.every,
        options.trouble,
        tuple(options.kinds.split(",")) if options.kinds else (),
        only,
        options.verbose,
        is_slow=options.days > 0,
    )
    began, failed, virtual, total = time.monotonic(), 0, 0.0, dict[str, int]()
    seeds = range(options.seed, options.seed + options.count)
    for outcome in run_seeds(seeds, setup, options.jobs, run_seed):
        virtual += outcome.virtual
        total = {name: total.get(name, 0) + count for name, count in outcome.figures.items()}
        for line in outcome.trace:
            print(f"  {line[:_LONGEST]}")
        if options.json:
            figures = {"seed": outcome.seed, "digest": outcome.digest, "steps": outcome.steps, **outcome.figures}
            print(json.dumps({**figures, "virtual": outcome.virtual, "wrong": [list(each) for each in outcome.wrong]}))
        elif outcome.wrong or options.count == 1:
            print(f"seed {outcome.seed}: digest {outcome.digest}, {outcome.steps} steps, {outcome.figures}")
        for rule, text in outcome.wrong[:_SHOWN]:
            print(f"  WRONG {rule}: {text[:_LONGEST]}")
        if outcome.wrong:
            failed += 1
            print(f"  replay: {replay_line(outcome.seed, options)}", flush=True)
    took = time.monotonic() - began
    print(
        f"{options.count} seeds, {failed} wrong, {took:.1f} s, {virtual:.0f} virtual s, x{virtual / took:.0f}",
        flush=True,
    )
    if options.figures:
        said = {"seeds": options.count, "wrong": failed, "virtual_s": round(virtual), **total}
        options.figures.write_text(json.dumps({**said, "factor": round(virtual / took)}), encoding="utf-8")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    default = Setup()
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.agents", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds")
    parser.add_argument("--agents", type=int, default=default.agents)
    parser.add_argument("--people", type=int, default=default.people, help="on each server")
    parser.add_argument("--seconds", type=float, default=default.seconds, help="virtual seconds of work and faults")
    parser.add_argument("--days", type=float, default=0.0, help="the same in days, with links that look seldom")
    parser.add_argument("--every", type=float, default=default.every, help="mean seconds between two acts of a person")
    parser.add_argument("--trouble", type=float, default=default.trouble, help="mean seconds between two faults")
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of faults")
    parser.add_argument("--faults", help="only these faults of the seed, by their numbers")
    parser.add_argument("--jobs", type=int, default=1, help="seeds at a time")
    parser.add_argument("--verbose", action="store_true", help="print what happened")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each seed")
    parser.add_argument("--figures", type=Path, help="write the figures of all seeds to this file")
    return parser.parse_args()


def replay_line(seed: int, options: argparse.Namespace) -> str:
    """Return the command that runs a seed again."""
    names = ("agents", "people", "seconds", "days", "every", "trouble", "kinds", "faults")
    given = [f"--{name} {value}" for name in names if (value := getattr(options, name)) is not None]
    return " ".join([".venv/bin/python -m tests.simulation.agents", f"--seed {seed}", *given])


if __name__ == "__main__":
    sys.exit(main())
