"""Questions of a new reader about where things are: each answer is a file that exists, also after a rename."""

import csv
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
RENAMES = ROOT / "docs" / "renames.csv"
PACKAGES = {
    *("protocol", "config", "server", "skills", "transport", "clients", "orchestrator"),
    *("wiki", "bridge", "door", "facts", "web", "cli"),
}
"""The packages of the tree, by the names that they had when the questions were fixed."""


class Question(NamedTuple):
    """A question, and the files that count as its answer, by the paths of the day when it was fixed."""

    asked: str
    answer: str
    also: Sequence[str] = ()


def questions() -> list[Question]:
    """All questions, in the order of the file."""
    text = (Path(__file__).parent / "questions.toml").read_text(encoding="utf-8")
    return [Question(**row) for row in tomllib.loads(text)["question"]]


def renames(lines: Iterable[str]) -> dict[str, set[str]]:
    """Old path → new paths, from the lines of a CSV with the columns old and new."""
    table: dict[str, set[str]] = {}
    for row in csv.DictReader(lines):
        table.setdefault(row["old"], set()).add(row["new"])
    return table


def present(path: str, table: dict[str, set[str]]) -> set[str]:
    """The paths a file has now: chains of renames are followed to their ends, and a path without one stays."""
    ends, seen, waiting = set(), {path}, [path]
    while waiting:
        here = waiting.pop()
        further = table.get(here, set()) - {here}
        if not further:
            ends.add(here)
        waiting += further - seen
        seen |= further
    return ends


def table() -> dict[str, set[str]]:
    """docs/renames.csv; empty while there is none."""
    if not RENAMES.exists():
        return {}
    with RENAMES.open(encoding="utf-8", newline="") as lines:
        return renames(lines)


@pytest.mark.parametrize("question", questions(), ids=lambda question: question.answer.removeprefix("culture/"))
def test_each_answer_is_a_file_that_exists(question: Question) -> None:
    known = table()
    for path in (question.answer, *question.also):
        ends = present(path, known)
        assert ends, f"{path} was renamed in a circle"
        assert [end for end in sorted(ends) if not (ROOT / end).is_file()] == []


def test_there_are_24_questions_from_all_packages() -> None:
    asked = questions()
    assert len({question.asked for question in asked}) == len({question.answer for question in asked}) == 24
    assert {question.answer.split("/")[1] for question in asked} == PACKAGES


def test_no_question_names_its_file() -> None:
    for question in questions():
        words = set(re.findall(r"[a-z]+", question.asked.lower()))
        stems = {Path(path).stem for path in (question.answer, *question.also)}
        assert not words & {part for stem in stems for part in stem.split("_")}, question.asked


@pytest.mark.parametrize(
    ("path", "ends"),
    [
        ("a.py", {"c.py"}),
        ("b.py", {"c.py"}),
        ("c.py", {"c.py"}),
        ("parts.py", {"one.py", "c.py"}),
        ("round.py", set()),
        ("new.py", {"new.py"}),
    ],
)
def test_chains_of_renames_are_followed(path: str, ends: set[str]) -> None:
    lines = ["old,new", "a.py,b.py", "b.py,c.py", "parts.py,one.py", "parts.py,a.py", "round.py,x.py", "x.py,round.py"]
    assert present(path, renames(lines)) == ends
