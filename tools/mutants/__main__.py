"""Try a sample of mutations: python -m tools.mutants [--count 200] [--seed N] [--minutes 60] [--only PACKAGE]."""

import argparse
import json
import os
import random
import subprocess
import sys
import time
import tomllib
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from tools.mutants.coverage import Coverage
from tools.mutants.operators import Mutation, compiles, mutations
from tools.mutants.trees import TREES, Tree
from tools.rows import ROOT

JUDGED = ROOT / "tests" / "mutants.toml"
"""Survivors that somebody looked at: ``equivalent`` (no program could tell) and ``left``, each with the reason."""
_ROUNDS = (20.0, 90.0)  # seconds of tests that are tried for a mutation: the most specific first, then more
_PATIENCE = 3.0  # how much longer than recorded tests may take, on a busy machine, before a mutation counts as noticed
_GRACE = 30.0
_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider")
_LEAST_TOTAL, _LEAST_PACKAGE = 0.85, 0.75


@dataclass(frozen=True)
class Outcome:
    """How a mutation ended: ``killed``, ``timeout``, ``survived`` or ``untested`` (no test calls the function)."""

    id: str
    package: str
    state: str
    by: str
    seconds: float


def package_of(path: str) -> str:
    """Return the package that a module is counted with; the backends of agents are one."""
    _, *names = Path(path).parts
    if names[0] == "clients":
        return "clients.shared" if names[1] == "shared" else "clients.backends"
    return names[0].removesuffix(".py")


def sample(count: int, seed: int, only: str | None = None) -> list[Mutation]:
    """Return ``count`` mutations, as many in each package, chosen and ordered by the seed."""
    found: dict[str, list[Mutation]] = defaultdict(list)
    sources = {}
    for path in sorted((ROOT / "culture").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        package = package_of(name)
        if only in (None, package):
            sources[name] = path.read_text(encoding="utf-8")
            found[package] += mutations(name, sources[name])
    chance = random.Random(seed)
    queues = {package: chance.sample(each, len(each)) for package, each in found.items() if each}
    chosen: list[Mutation] = []
    while len(chosen) < count and any(queues.values()):
        for queue in queues.values():
            if queue and len(chosen) < count and compiles(queue[-1], sources[queue[-1].path]):
                chosen.append(queue[-1])
            if queue:
                queue.pop()
    return chosen


def record(workers: int, tests: str) -> Coverage:
    """Run the suite once with the recorder, or the ``tests`` of it, unless that was done.

    Delete its file to do it anew. A recording of some commits before is good enough: tests are chosen by functions, not
    by lines.
    """
    file = TREES / f"coverage{tests.replace('/', '-')}.json"
    if not file.exists():
        print("recording which tests call which function: the whole suite, some 20 minutes", flush=True)
        TREES.mkdir(parents=True, exist_ok=True)
        tree = Tree("recorded")
        tree.make(recorded=True)
        _, output = tree.pytest(
            *(
                "-n",
                str(workers),
                "--dist",
                "loadfile",
                "--no-loadscope-reorder",
                "-p",
                "culture_recorder",
                "-q",
                *tests.split(),
            ),
            timeout=5400,
        )
        print(output[-1500:], flush=True)
        coverage = Coverage.read(tree.recording)
        if not coverage.seconds:
            raise SystemExit("no test passed in the recorded run: see its output above")
        coverage.save(file)
    return Coverage.load(file)


def attempt(tree: Tree, mutation: Mutation, coverage: Coverage) -> Outcome:
    """Try one mutation in a tree, which is as before afterwards."""
    began = time.monotonic()
    state, by = "untested", ""
    tried: set[str] = set()
    for budget in _ROUNDS:
        tests = [test for test in coverage.tests_for(mutation, budget) if test not in tried]
        tried.update(tests)
        if tests:
            state, by = _try(tree, mutation, coverage, tests)
            if state != "survived":
                break
    return Outcome(mutation.id, package_of(mutation.path), state, by, round(time.monotonic() - began, 1))


def _try(tree: Tree, mutation: Mutation, coverage: Coverage, tests: list[str]) -> tuple[str, str]:
    """Run tests with a mutation; return how that ended and by which test.

    A test that fails without the mutation too says nothing: it is left out, and the others are tried.
    """
    path = tree.root / mutation.path
    source = path.read_text(encoding="utf-8")
    while tests:
        patience = _GRACE + _PATIENCE * sum(coverage.seconds[test] for test in tests)
        try:
            path.write_text(mutation.applied(source), encoding="utf-8")
            code, output = tree.pytest(*_OPTIONS, *tests, timeout=patience)
        finally:
            path.write_text(source, encoding="utf-8")
        if code == 0:
            return "survived", ""
        failed = _failed(output)
        suspects = [failed] if failed in tests else tests
        if tree.pytest(*_OPTIONS, *suspects, timeout=patience)[0] == 0:
            return ("timeout", "no test ended in time") if code is None else ("killed", failed)
        tests = [test for test in tests if test not in suspects]
    return "survived", ""


def _failed(output: str) -> str:
    """Return the test that failed, from the output of pytest; its last line if there is none."""
    lines = output.strip().splitlines() or [""]
    found = (line.split(" ", 1)[1].partition(" - ")[0] for line in lines if line.startswith(("FAILED ", "ERROR ")))
    return next(found, lines[-1])


def judged() -> dict[str, tuple[str, str]]:
    """Return what somebody found out about survivors: by id ``equivalent`` or ``left``, and the reason."""
    if not JUDGED.exists():
        return {}
    data = tomllib.loads(JUDGED.read_text(encoding="utf-8"))
    return {id: (kind, reason) for kind in ("equivalent", "left") for id, reason in data.get(kind, {}).items()}


def summary(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Return the figures: killed of those that are not equivalent, in all and by package, and the survivors."""
    known = judged()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    survivors = {}
    for each in outcomes:
        state = each.state
        if state in ("survived", "untested"):
            kind, reason = known.get(each.id, ("", ""))
            state = "equivalent" if kind == "equivalent" else state
            survivors[each.id] = f"{kind or each.state}: {reason or 'not looked at'}"
        counts[each.package][state] += 1
    total = sum(counts.values(), Counter())
    return {
        "tried": total.total(),
        "states": dict(total),
        "score": _score(total),
        "packages": {package: {"score": _score(each), **each} for package, each in sorted(counts.items())},
        "survivors": dict(sorted(survivors.items())),
    }


def _score(counts: Counter[str]) -> float:
    noticed, all_of_them = counts["killed"] + counts["timeout"], counts.total() - counts["equivalent"]
    return round(noticed / all_of_them, 3) if all_of_them else 1.0


def _commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants", description="Change the code; see if a test fails."
    )
    parser.add_argument("--count", type=int, default=200, help="mutations to try (200)")
    parser.add_argument("--seed", type=int, default=19, help="which ones (19)")
    parser.add_argument("--minutes", type=float, default=60, help="stop trying after so many minutes (60)")
    parser.add_argument("--only", help="one package alone, such as lib or clients.shared")
    parser.add_argument("--jobs", type=int, default=max(2, (os.cpu_count() or 2)), help="mutations tried at once")
    parser.add_argument("--tests", default="", help="record this folder of tests alone, for a quick look at a package")
    parser.add_argument("--list", action="store_true", help="show the sample and try nothing")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    return parser.parse_args()


def main() -> int:
    """Run the sample and print what survived; 1 if the score is too low."""
    options = _options()
    chosen = sample(options.count, options.seed, options.only)
    if options.list:
        print("\n".join(each.id for each in chosen))
        return 0
    coverage = record(options.jobs + 2, options.tests)
    trees = [Tree(f"job-{number}") for number in range(options.jobs)]
    for tree in trees:
        tree.make()
    file = TREES / f"results-{_commit()}.json"  # a run that was interrupted goes on where it was
    outcomes = {each["id"]: Outcome(**each) for each in json.loads(file.read_text())} if file.exists() else {}
    deadline = time.monotonic() + options.minutes * 60

    waiting = deque(each for each in chosen if each.id not in outcomes)
    turn = Lock()

    def work(tree: Tree) -> None:
        while time.monotonic() < deadline:
            with turn:
                if not waiting:
                    return
                mutation = waiting.popleft()
            outcome = attempt(tree, mutation, coverage)
            with turn:
                outcomes[mutation.id] = outcome
                number = len(outcomes)
                print(f"{number:4} {outcome.state:9} {outcome.seconds:5} s  {mutation.id}  {outcome.by}", flush=True)
                file.write_text(json.dumps([asdict(each) for each in outcomes.values()]))

    with ThreadPoolExecutor(len(trees)) as threads:
        for done in [threads.submit(work, tree) for tree in trees]:
            done.result()
    figures = {"seed": options.seed, **summary(outcomes[each.id] for each in chosen if each.id in outcomes)}
    print(json.dumps(figures, indent=1))
    if options.json:
        options.json.write_text(json.dumps(figures))
    scores = [each["score"] for each in figures["packages"].values()]
    enough = figures["score"] >= _LEAST_TOTAL and all(score >= _LEAST_PACKAGE for score in scores)
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
