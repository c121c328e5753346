"""Ties the rows of docs/requirements/ to the tests that prove them, and writes the pages people read."""

import contextlib
import io
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from pathlib import Path

import pytest

from tools.rows import ROOT, Kind, Plan, Row, Shown, by_hand, load, refuse_unknown

PAGES = {Kind.REQUIREMENT: ROOT / "docs" / "requirements.md", Kind.FAULT: ROOT / "docs" / "faults.md"}
_TITLES = {Kind.REQUIREMENT: "Requirements", Kind.FAULT: "Fault and abuse cases"}
_DECISIONS = "decisions/0000-founding-decisions.md"

Proofs = Mapping[Kind, Mapping[str, tuple[str, ...]]]


class State(Enum):
    """What can be said of a row."""

    PROVEN = "proven"
    SUPERSEDED = "superseded"
    BY_HAND = "shown by hand"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Standing:
    """A row, its state and what the state rests on."""

    row: Row
    state: State
    grounds: str


def marked(item: pytest.Item) -> Iterator[tuple[Kind, str]]:
    """The rows a test says it proves; a test that is not run, or expected to fail, proves none."""
    if any(item.iter_markers("skip")) or any(item.iter_markers("xfail")):
        return
    for kind in Kind:
        for mark in item.iter_markers(kind.value):
            yield from ((kind, str(row_id)) for row_id in mark.args)


def check_markers(items: Iterable[pytest.Item]) -> None:
    """Raise when a marker names a row that does not exist, or none at all."""
    for item in items:
        for kind in Kind:
            for mark in item.iter_markers(kind.value):
                refuse_unknown(kind, [str(row_id) for row_id in mark.args or ("nothing",)], item.nodeid)


def proofs(items: Iterable[pytest.Item]) -> Proofs:
    """Row → tests, each test function once, however many parameters it has."""
    found: dict[Kind, dict[str, set[str]]] = {kind: {} for kind in Kind}
    for item in items:
        for kind, row_id in marked(item):
            found[kind].setdefault(row_id, set()).add(item.nodeid.partition("[")[0].removeprefix("tests/"))
    return {kind: {row_id: tuple(sorted(tests)) for row_id, tests in rows.items()} for kind, rows in found.items()}


class _Collector:
    """A pytest plugin that keeps what was collected."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = session.items


def collect() -> list[pytest.Item]:
    """Every test of the suite, none of them run."""
    collector, said = _Collector(), io.StringIO()
    os.chdir(ROOT)
    with contextlib.redirect_stdout(said):
        status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider"], plugins=[collector])
    if status != pytest.ExitCode.OK:
        sys.exit(f"{said.getvalue()}\nthe tests cannot be collected")
    return collector.items


def _hand(shown: Shown) -> str:
    links = ", ".join(f"[{name}](evidence/{name})" for name in shown.evidence)
    return "; ".join(part for part in (f"{shown.when}: {shown.done}", shown.figures, links) if part)


def _judge(row: Row, tests: tuple[str, ...], plan: Plan, shown: Shown | None) -> Standing:
    """One row's state: tests weigh more than a demonstration, and either more than a promise."""
    decision = plan.superseded.get(row.id)
    replaced = f"by [decision {decision}]({_DECISIONS})" if decision else ""
    listed = "<br>".join(f"`{test}`" for test in tests)
    if tests:
        hand = _hand(shown) if shown else ""
        rest = plan.reasons.get(row.id)
        grounds = "<br>".join(part for part in (replaced, listed, hand, f"not yet: {rest}" if rest else "") if part)
        return Standing(row, State.SUPERSEDED if decision else State.PROVEN, grounds)
    if shown:
        return Standing(row, State.BY_HAND, _hand(shown))
    part = plan.parts.get(row.id)
    reason = plan.reasons.get(row.id) or (f"comes with {part}" if part else "in no part of the plan")
    return Standing(row, State.OPEN, f"{reason}; replaced {replaced}" if decision else reason)


def standings(kind: Kind, tests: Mapping[str, tuple[str, ...]]) -> list[Standing]:
    """The state of every row of a list."""
    plan, shown = Plan.load(kind), by_hand(kind)
    return [_judge(row, tests.get(row_id, ()), plan, shown.get(row_id)) for row_id, row in load(kind).items()]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _totals(all_rows: list[Standing]) -> Iterator[str]:
    yield "| group | " + " | ".join(state.value for state in State) + " | rows |"
    yield "|---|" + "---:|" * (len(State) + 1)
    groups = [(group, list(rows)) for group, rows in groupby(all_rows, key=lambda standing: standing.row.group)]
    for name, rows in [*groups, ("**all**", all_rows)]:
        count = Counter(standing.state for standing in rows)
        yield f"| {name} | " + " | ".join(str(count[state]) for state in State) + f" | {len(rows)} |"


def page(kind: Kind, tests: Mapping[str, tuple[str, ...]]) -> str:
    """The page for people: totals, then a table per group."""
    rows = standings(kind, tests)
    source = kind.rows_file.relative_to(ROOT / "docs").as_posix()
    lines = [
        f"# {_TITLES[kind]}",
        "",
        f"Written by `make requirements` from [{source}]({source}) and from the tests; do not edit.",
        f'*Proven*: tests marked `@pytest.mark.{kind.value}("…")`. *Superseded*: a decision replaced the row, and a',
        "test of the decision carries the marker. *Shown by hand*: see [evidence](evidence/). *Open*: with the reason.",
        "",
        *_totals(rows),
    ]
    for group, members in groupby(rows, key=lambda standing: standing.row.group):
        lines += ["", f"## {group}", "", "| id | wanted | state | |", "|---|---|---|---|"]
        lines += [f"| {m.row.id} | {_cell(m.row.text)} | {m.state.value} | {_cell(m.grounds)} |" for m in members]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the pages; with --check only say which of them are out of date."""
    tests = proofs(collect())
    pages: dict[Path, str] = {path: page(kind, tests[kind]) for kind, path in PAGES.items()}
    stale = [path for path, text in pages.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        if stale:
            sys.exit(f"out of date, run `make requirements`: {', '.join(path.name for path in stale)}")
        return
    for path in stale:
        path.write_text(pages[path], encoding="utf-8")
    for kind in Kind:
        count = Counter(standing.state for standing in standings(kind, tests[kind]))
        print(f"{kind.plural}: " + ", ".join(f"{count[state]} {state.value}" for state in State))


if __name__ == "__main__":
    main()
