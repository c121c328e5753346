"""``python -m tests.simulation.injected``: how many seeds it takes to find each of the bugs in ``injected_bugs.toml``.

With ``--list hostile`` it is for the holes in ``hostile_bugs.toml``, by seeds that have a hostile peer. Each bug is put
into a copy of the product and the simulator under ``build/injected``. Seeds run there until one of them fails, which is
then run without the bug, where it must not fail, and once more with it: a failure counts only if the same seed gives
the same digest again.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LISTS = ("injected", "hostile")
WANTED = 0.85
"""So large a part of the bugs has to be found."""
_BUILD = ROOT / "build" / "injected"
_COPIED = ("culture", "tests/simulation")
_LONGEST = 300


@dataclass(frozen=True)
class Bug:
    """A bug: in the file ``path``, ``new`` takes the place of ``old``."""

    name: str
    path: str
    old: str
    new: str
    servers: int = 2
    """How many servers it takes to see it."""
    is_hostile: bool = False
    """Whether it takes a hostile peer."""


@dataclass(frozen=True)
class Result:
    """What came of looking for a bug."""

    number: int
    name: str
    seed: int | None
    """The first seed that failed; None if none did."""
    ran: int
    """How many seeds ran."""
    seconds: float
    failed_also: Sequence[int] = ()
    """Seeds that failed before, with the bug and without it."""
    is_same: bool = False
    """Whether that seed gave the same failure and digest when it ran again."""
    rule: str = ""
    symptom: str = ""

    @property
    def is_found(self) -> bool:
        """Return whether a seed finds the bug, and finds it again."""
        return self.seed is not None and self.is_same


def list_file(name: str) -> Path:
    """Return the file of a list of bugs."""
    return Path(__file__).with_name(f"{name}_bugs.toml")


def read_bugs(name: str = LISTS[0]) -> list[Bug]:
    """Return the bugs of a list."""
    default = Bug("", "", "", "", servers=3, is_hostile=True) if name == "hostile" else Bug("", "", "", "")
    return [replace(default, **each) for each in tomllib.loads(list_file(name).read_text())["bug"]]


def inject(bug: Bug, tree: Path) -> None:
    """Copy the product and the simulator into a folder, with a bug."""
    shutil.rmtree(tree, ignore_errors=True)
    for each in _COPIED:
        shutil.copytree(ROOT / each, tree / each, ignore=shutil.ignore_patterns("__pycache__"))
    file = tree / bug.path
    text = file.read_text()
    if text.count(bug.old) != 1:
        raise ValueError(f"{bug.path} has the text of {bug.name!r} {text.count(bug.old)} times")
    file.write_text(text.replace(bug.old, bug.new))


def look_for(number: int, bug: Bug, most: int, jobs: int) -> Result:
    """Run seeds with a bug until one fails that does not fail without it, at most so many."""
    tree = _BUILD / str(number)
    inject(bug, tree)
    began = time.monotonic()
    count, failed, also = 0, None, []
    while count < most and failed is None:
        ran = _run(tree, bug, "--seed", str(count), "--count", str(most - count), "--jobs", str(jobs))
        count += len(ran)
        failed = next((each for each in ran if each["wrong"]), None)
        if failed is not None and _run(ROOT, bug, "--seed", str(failed["seed"]))[0]["wrong"]:
            also.append(failed["seed"])
            failed = None
    seconds = round(time.monotonic() - began, 1)
    if failed is None:
        result = Result(number, bug.name, None, count, seconds, also)
    else:
        again = _run(tree, bug, "--seed", str(failed["seed"]))
        is_same = [(each["digest"], each["wrong"]) for each in again] == [(failed["digest"], failed["wrong"])]
        rule, text = failed["wrong"][0]
        result = Result(number, bug.name, failed["seed"], count, seconds, also, is_same, rule, text[:_LONGEST])
    shutil.rmtree(tree)
    return result


def _run(tree: Path, bug: Bug, *words: str) -> list[dict[str, Any]]:
    """Run the simulator of a folder up to the first failure; return what it says of each seed."""
    command = [sys.executable, "-m", "tests.simulation", "--json", "--servers", str(bug.servers), *words]
    command += ["--hostile"] if bug.is_hostile else []
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    seeds = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not seeds:
        raise RuntimeError(f"{bug.name}: {done.stdout}{done.stderr}")
    return seeds


def figures(results: Sequence[Result]) -> dict[str, Any]:
    """Return the results as figures of a proof."""
    found = [each for each in results if each.is_found]
    return {
        "bugs": len(results),
        "found": len(found),
        "median_seeds": statistics.median([each.ran for each in found]) if found else None,
        "median_seconds": statistics.median([each.seconds for each in found]) if found else None,
        "not_found": [each.name for each in results if not each.is_found],
        "each": [asdict(each) for each in results],
    }


def main() -> int:
    """Look for the bugs that the command line names; return 1 if too few were found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.injected", description=__doc__)
    parser.add_argument("--list", choices=LISTS, default=LISTS[0], help="which bugs")
    parser.add_argument("--only", type=int, action="append", help="the number of a bug, from 0; several are possible")
    parser.add_argument("--most", type=int, default=400, help="how many seeds, at most, for each")
    parser.add_argument("--jobs", type=int, default=1, help="seeds at a time")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    results = []
    for number, bug in enumerate(read_bugs(options.list)):
        if options.only is None or number in options.only:
            results.append(look_for(number, bug, options.most, options.jobs))
            _show(results[-1])
    summary = figures(results)
    print(f"{summary['found']} of {summary['bugs']} found, by {summary['median_seeds']} seeds in the median")
    if options.json is not None:
        options.json.write_text(json.dumps(summary, indent=2))
    return 0 if summary["found"] >= WANTED * len(results) else 1


def _show(result: Result) -> None:
    if result.seed is None:
        outcome = f"not found in {result.ran} seeds"
    else:
        outcome = f"seed {result.seed}, {'the same again' if result.is_same else 'ANOTHER RUN WHEN REPEATED'}"
    print(f"{result.number:2} {outcome}, {result.seconds} s: {result.name}", flush=True)
    if result.rule:
        print(f"   {result.rule}: {result.symptom}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
