"""The ledger: each row is there once, and the pages say what the markers say."""

import subprocess
import sys

import pytest

from tools import requirements
from tools.requirements import State, standings
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


def test_a_marker_makes_a_row_proven_and_a_replaced_one_superseded(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown("watched it", "2026-11-16")
    monkeypatch.setattr(requirements, "by_hand", lambda kind: {"A03": shown})
    state = {s.row.id: s for s in standings(Kind.REQUIREMENT, {"A01": ("test_x",), "F10": ("test_y",)})}
    assert state["A01"].state is State.PROVEN
    assert state["F10"].state is State.SUPERSEDED and "decision 27" in state["F10"].grounds
    assert state["A03"].state is State.BY_HAND and "watched it" in state["A03"].grounds
    assert state["F11"].state is State.OPEN and "decision 27" in state["F11"].grounds
    assert state["E01"].state is State.OPEN and state["E01"].grounds == "comes with federation"


def is_of_everything(session: pytest.Session) -> bool:
    """Whether a run has every test in it."""
    files = {path for path in (ROOT / "tests").rglob("test_*.py") if not {"proof", "irctest"} & set(path.parts)}
    chosen = session.config.getoption("keyword") or session.config.getoption("markexpr")
    return not chosen and files <= {item.path for item in session.items}


def test_the_pages_are_up_to_date(request: pytest.FixtureRequest) -> None:
    """Collects in a process of its own where this run is not of everything."""
    if is_of_everything(request.session):
        tests = requirements.proofs(request.session.items)
        for kind in Kind:
            assert requirements.PAGES[kind].read_text(encoding="utf-8") == requirements.page(kind, tests[kind])
        return
    done = subprocess.run(
        [sys.executable, "-m", "tools.requirements", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
