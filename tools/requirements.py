"""Ties the rows of docs/requirements/ to the tests that prove them, and writes the pages people read.

A row is proven if tests carry its marker, all of them passed in the last full run, and none says that it shows a part
alone. Three sources decide, all of them committed, so that the pages can be checked anywhere and at any time:

- the markers: `@pytest.mark.requirement("A01", part="what is missing")`, where `part` is left out by a test that shows
  the whole row;
- docs/evidence/suite.json: which marked tests passed in the last full run, and which records were stale. A full run
  of `make test` leaves its outcome in build/last-run.json; `make requirements` takes it from there;
- docs/evidence/by-hand.toml: what was shown by hand, and the records that it rests on.
"""

import contextlib
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tools.proof import EVIDENCE, PROOFS, why_stale
from tools.rows import ROOT, Kind, Plan, Row, Shown, SourceError, by_hand, load, refuse_unknown

PAGES = {Kind.REQUIREMENT: ROOT / "docs" / "requirements.md", Kind.FAULT: ROOT / "docs" / "faults.md"}
_TITLES = {Kind.REQUIREMENT: "Requirements", Kind.FAULT: "Fault and abuse cases"}
_DECISIONS = "decisions/0000-founding-decisions.md"

SUITE = EVIDENCE / "suite.json"
LAST_RUN = ROOT / "build" / "last-run.json"


@dataclass(frozen=True, slots=True, order=True)
class Marked:
    """A test that carries the marker of a row, and what it says is missing: nothing if it shows the whole row."""

    test: str
    part: str = ""


Proofs = Mapping[Kind, Mapping[str, tuple[Marked, ...]]]


class State(Enum):
    """What can be said of a row."""

    PROVEN = "proven"
    PART = "part"
    SUPERSEDED = "superseded"
    BY_HAND = "by hand"
    STALE = "stale"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Suite:
    """The last full run of the tests, and the records of `make proof` that are stale."""

    commit: str = ""
    passed: frozenset[str] = frozenset()
    """Marked tests that passed, without parameters."""
    stale: Mapping[str, str] = field(default_factory=dict)
    """Name of a record → why it says nothing of today's code."""

    @classmethod
    def load(cls, path: Path = SUITE) -> "Suite":
        """What docs/evidence/suite.json says; nothing passed where it is missing."""
        if not path.is_file():
            return cls()
        saved: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        passed = (f"{file}::{test}" for file, tests in saved["passed"].items() for test in tests)
        return cls(saved["commit"], frozenset(passed), saved["stale"])

    def save(self, path: Path = SUITE) -> None:
        """Write docs/evidence/suite.json."""
        files: dict[str, list[str]] = {}
        for test in sorted(self.passed):
            file, _, name = test.partition("::")
            files.setdefault(file, []).append(name)
        text = json.dumps({"commit": self.commit, "stale": dict(self.stale), "passed": files}, indent=1)
        path.write_text(text + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Standing:
    """A row, its state and what the state rests on."""

    row: Row
    state: State
    grounds: str


def marked(item: pytest.Item) -> Iterator[tuple[Kind, str, str]]:
    """The rows a test says it proves, and what of each it does not; a test that is not run, or expected to fail, proves
    none.
    """
    if any(item.iter_markers("skip")) or any(item.iter_markers("xfail")):
        return
    for kind in Kind:
        for mark in item.iter_markers(kind.value):
            yield from ((kind, str(row_id), str(mark.kwargs.get("part", ""))) for row_id in mark.args)


def name_of(nodeid: str) -> str:
    """A test without its parameters, as the pages name it."""
    return nodeid.partition("[")[0].removeprefix("tests/")


def check_markers(items: Iterable[pytest.Item]) -> None:
    """Raise when a marker names a row that does not exist, or none at all."""
    for item in items:
        for kind in Kind:
            for mark in item.iter_markers(kind.value):
                refuse_unknown(kind, [str(row_id) for row_id in mark.args or ("nothing",)], item.nodeid)
                if mark.kwargs.keys() - {"part"} or not mark.kwargs.get("part", "nothing"):
                    raise SourceError(f'{item.nodeid}: a marker takes part="what is missing", and nothing else')


def proofs(items: Iterable[pytest.Item]) -> Proofs:
    """Row → tests, each test function once, however many parameters it has."""
    found: dict[Kind, dict[str, set[Marked]]] = {kind: {} for kind in Kind}
    for item in items:
        for kind, row_id, part in marked(item):
            found[kind].setdefault(row_id, set()).add(Marked(name_of(item.nodeid), part))
    return {kind: {row_id: tuple(sorted(tests)) for row_id, tests in rows.items()} for kind, rows in found.items()}


class _Collector:
    """A pytest plugin that keeps what was collected."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = session.items


def collect() -> list[pytest.Item]:
    """Every test of the suite and of the proofs, none of them run."""
    collector, said = _Collector(), io.StringIO()
    os.environ["CULTURE_PROOF"] = "1"
    os.chdir(ROOT)
    with contextlib.redirect_stdout(said):
        status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider"], plugins=[collector])
    if status != pytest.ExitCode.OK:
        sys.exit(f"{said.getvalue()}\nthe tests cannot be collected")
    return collector.items


def _hand(shown: Shown) -> str:
    links = ", ".join(f"[{name}](evidence/{name})" for name in shown.evidence)
    return "; ".join(part for part in (f"{shown.when}: {shown.done}", shown.figures, links) if part)


def _proof_of(test: str) -> str:
    """The record that a test under tests/proof leaves; empty for a test of the suite."""
    file = "tests/" + test.partition("::")[0]
    return next((name for name, proof in PROOFS.items() if file in proof.command), "")


def _lacks(test: Marked, suite: Suite) -> str:
    """Why a marked test does not show its row today; empty where it does. What it says is missing does not count."""
    if name := _proof_of(test.test):
        if not (EVIDENCE / f"{name}.json").is_file():
            return f"`make proof NAME={name}` has left no record yet"
        return f"{name}.json: {suite.stale[name]}" if name in suite.stale else ""
    return "" if test.test in suite.passed else "has not passed in the last full run"


def _judge(row: Row, tests: tuple[Marked, ...], plan: Plan, shown: Shown | None, suite: Suite) -> Standing:
    """One row's state: tests weigh more than a demonstration, and either more than a promise."""
    decision = plan.superseded.get(row.id)
    replaced = f"by [decision {decision}]({_DECISIONS})" if decision else ""
    hand = _hand(shown) if shown else ""
    old = [
        f"{name}: {suite.stale[stem]}"
        for name in (shown.evidence if shown else ())
        if (stem := name.removesuffix(".json")) in suite.stale
    ]
    if tests:
        lacking = {test.test: reason for test in tests if (reason := _lacks(test, suite))}
        listed = [f"`{test.test}`" + (f" ({lacking[test.test]})" if test.test in lacking else "") for test in tests]
        missing = list(dict.fromkeys(test.part for test in tests if test.part))
        if rest := plan.reasons.get(row.id):
            missing.append(rest)
        grounds = "<br>".join(
            part for part in (replaced, *listed, hand, *(f"not yet: {each}" for each in missing)) if part
        )
        if lacking:
            state = State.STALE if all(map(_proof_of, lacking)) else State.OPEN
        elif missing:
            state = State.PART
        else:
            state = State.SUPERSEDED if decision else State.PROVEN
        return Standing(row, state, grounds)
    if shown:
        missing = [f"not yet: {plan.reasons[row.id]}"] if row.id in plan.reasons else []
        state = State.STALE if old else State.PART if missing else State.BY_HAND
        return Standing(row, state, "<br>".join((hand, *missing, *old)))
    part = plan.parts.get(row.id)
    reason = plan.reasons.get(row.id) or (f"comes with {part}" if part else "in no part of the plan")
    return Standing(row, State.OPEN, f"{reason}; replaced {replaced}" if decision else reason)


def standings(kind: Kind, tests: Mapping[str, tuple[Marked, ...]], suite: Suite) -> list[Standing]:
    """The state of every row of a list."""
    plan, shown = Plan.load(kind), by_hand(kind)
    return [_judge(row, tests.get(row_id, ()), plan, shown.get(row_id), suite) for row_id, row in load(kind).items()]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _totals(all_rows: list[Standing]) -> Iterator[str]:
    yield "| group | " + " | ".join(state.value for state in State) + " | rows |"
    yield "|---|" + "---:|" * (len(State) + 1)
    groups = [(group, list(rows)) for group, rows in groupby(all_rows, key=lambda standing: standing.row.group)]
    for name, rows in [*groups, ("**all**", all_rows)]:
        count = Counter(standing.state for standing in rows)
        yield f"| {name} | " + " | ".join(str(count[state]) for state in State) + f" | {len(rows)} |"


def page(kind: Kind, tests: Mapping[str, tuple[Marked, ...]], suite: Suite) -> str:
    """The page for people: totals, then a table per group."""
    rows = standings(kind, tests, suite)
    source = kind.rows_file.relative_to(ROOT / "docs").as_posix()
    lines = [
        f"# {_TITLES[kind]}",
        "",
        f"Written by `make requirements` from [{source}]({source}) and from the tests; do not edit.",
        f'*Proven*: all tests marked `@pytest.mark.{kind.value}("…")` passed in the last full run and show the whole',
        "row. *Part*: they passed, and say what is missing. *Superseded*: a decision replaced the row, and tests of",
        "the decision passed. *By hand*: see [evidence](evidence/). *Stale*: it rests on a record that is too old, or",
        "much of what the record concerns has changed since. *Open*: with the reason.",
        "",
        *_totals(rows),
    ]
    for group, members in groupby(rows, key=lambda standing: standing.row.group):
        lines += ["", f"## {group}", "", "| id | wanted | state | |", "|---|---|---|---|"]
        lines += [f"| {m.row.id} | {_cell(m.row.text)} | {m.state.value} | {_cell(m.grounds)} |" for m in members]
    return "\n".join(lines) + "\n"


def last_run(tests: Proofs) -> Suite:
    """The last full run with the marked tests that passed in it, and what is stale today."""
    stale = {
        path.stem: why for path in sorted(EVIDENCE.glob("*.json")) if path != SUITE and (why := why_stale(path.stem))
    }
    if not LAST_RUN.is_file():
        return replace(Suite.load(), stale=stale)
    run: dict[str, Any] = json.loads(LAST_RUN.read_text(encoding="utf-8"))
    wanted = {test.test for rows in tests.values() for row in rows.values() for test in row}
    return Suite(run["commit"], frozenset(map(name_of, run["passed"])) & wanted, stale)


def main() -> None:
    """Write the pages; with --check only say which of them are out of date."""
    tests, check = proofs(collect()), "--check" in sys.argv[1:]
    suite = Suite.load() if check else last_run(tests)
    pages: dict[Path, str] = {path: page(kind, tests[kind], suite) for kind, path in PAGES.items()}
    old = [path for path, text in pages.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if check:
        if old:
            sys.exit(f"out of date, run `make requirements`: {', '.join(path.name for path in old)}")
        return
    suite.save()
    for path in old:
        path.write_text(pages[path], encoding="utf-8")
    print(f"last full run: {suite.commit[:10] or 'none: run make test'}")
    for kind in Kind:
        count = Counter(standing.state for standing in standings(kind, tests[kind], suite))
        print(f"{kind.plural}: " + ", ".join(f"{count[state]} {state.value}" for state in State))


if __name__ == "__main__":
    main()
