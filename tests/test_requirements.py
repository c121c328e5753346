"""The ledger: each row is there once, and the pages say what the markers say."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tools import requirements
from tools.requirements import Marked, Standing, State, Suite, check_markers, standings
from tools.rows import ROOT, Kind, Plan, Shown, SourceError, by_hand, load, refuse_unknown


def test_all_rows_are_there() -> None:
    """332 requirements; 162 fault cases, I1 to I8 standing on one line."""
    assert len(load(Kind.REQUIREMENT)) == 332
    assert len(load(Kind.FAULT)) == 162


@pytest.mark.parametrize("kind", Kind)
def test_every_row_has_a_part_that_brings_it(kind: Kind) -> None:
    assert load(kind).keys() - Plan.load(kind).parts.keys() == set()


@pytest.mark.parametrize("kind", Kind)
def test_what_was_shown_by_hand_names_rows_and_files_that_exist(kind: Kind) -> None:
    assert by_hand(kind).keys() <= load(kind).keys()


def test_an_unknown_row_is_refused() -> None:
    with pytest.raises(SourceError, match="no requirement is called Z99"):
        refuse_unknown(Kind.REQUIREMENT, ["A01", "Z99"], "a test")


PASSED = Suite("c0ffee", frozenset({"test_x", "test_y"}))


def judged(monkeypatch: pytest.MonkeyPatch, suite: Suite = PASSED, **tests: Marked) -> dict[str, Standing]:
    """The rows by id, where these tests carry the markers of rows and A03 was shown by hand."""
    shown = Shown("watched it", "2026-11-16", evidence=("mesh.json",))
    monkeypatch.setattr(requirements, "by_hand", lambda kind: {"A03": shown})
    marked = {row: (test,) for row, test in tests.items()}
    return {standing.row.id: standing for standing in standings(Kind.REQUIREMENT, marked, suite)}


def test_a_test_that_passed_makes_a_row_proven_and_a_replaced_one_superseded(monkeypatch: pytest.MonkeyPatch) -> None:
    state = judged(monkeypatch, A01=Marked("test_x"), F10=Marked("test_y"))
    assert state["A01"].state is State.PROVEN
    assert state["F10"].state is State.SUPERSEDED and "decision 27" in state["F10"].grounds
    assert state["A03"].state is State.BY_HAND and "watched it" in state["A03"].grounds
    assert state["F11"].state is State.OPEN and "decision 27" in state["F11"].grounds
    assert state["E01"].state is State.OPEN and state["E01"].grounds == "comes with federation"


def test_a_test_that_says_what_is_missing_makes_a_row_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    state = judged(monkeypatch, A01=Marked("test_x", "a second server"))
    assert state["A01"].state is State.PART and state["A01"].grounds.endswith("not yet: a second server")


def test_a_test_that_did_not_pass_in_the_last_full_run_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    state = judged(monkeypatch, A01=Marked("test_new"))
    assert state["A01"].state is State.OPEN and "has not passed in the last full run" in state["A01"].grounds


def test_a_row_is_stale_with_the_record_that_it_rests_on(monkeypatch: pytest.MonkeyPatch) -> None:
    stale = replace(PASSED, stale={"mesh": "61 commits old", "idle": "61 commits old"})
    state = judged(
        monkeypatch, stale, A01=Marked("proof/test_idle.py::test_x"), A02=Marked("proof/test_team.py::test_x")
    )
    assert state["A01"].state is State.STALE and "idle.json: 61 commits old" in state["A01"].grounds
    assert state["A02"].state is State.PROVEN
    assert state["A03"].state is State.STALE and "mesh.json: 61 commits old" in state["A03"].grounds


def test_a_proof_without_a_record_proves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(requirements, "EVIDENCE", tmp_path)
    (tmp_path / "team.json").write_text("{}")
    state = judged(monkeypatch, A01=Marked("proof/test_idle.py::test_x"), A02=Marked("proof/test_team.py::test_x"))
    assert state["A01"].state is State.STALE and "NAME=idle` has left no record yet" in state["A01"].grounds
    assert state["A02"].state is State.PROVEN


def test_a_marker_takes_a_part_with_words_and_nothing_else() -> None:
    for wrong in ({"part": ""}, {"missing": "all"}):
        item = SimpleNamespace(
            nodeid="test_x", iter_markers=lambda kind, wrong=wrong: [SimpleNamespace(args=("A01",), kwargs=wrong)]
        )
        with pytest.raises(SourceError, match="a marker takes part"):
            check_markers([cast(pytest.Item, item)])


def test_what_is_saved_of_a_full_run_is_read_back(tmp_path: Path) -> None:
    suite = Suite("c0ffee", frozenset({"a/test_b.py::Test::test_c", "test_d.py::test_e"}), {"mesh": "old"})
    suite.save(tmp_path / "suite.json")
    assert Suite.load(tmp_path / "suite.json") == suite
    assert Suite.load(tmp_path / "nothing.json") == Suite()


def test_the_pages_are_up_to_date() -> None:
    """They follow from what is committed, so that no test depends on a record's age."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.requirements", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
