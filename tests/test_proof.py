"""A proof leaves a record that tells what was run, on which commit, with which seed and figures."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools import proof
from tools.proof import PROOFS, Proof, closing_figures, main, run, why_stale

PROGRAM = """
import json, os
print("working")
print("3 passed in 0.10s")
with open(os.environ["PROOF_FIGURES"], "w") as out:
    json.dump({"seeds": 5, "seed": int(os.environ["PROOF_SEED"])}, out)
"""


def test_a_proof_leaves_its_record(tmp_path: Path) -> None:
    assert run(Proof("sample", "a sample", [sys.executable, "-c", PROGRAM]), seed=7, evidence=tmp_path)
    record = json.loads((tmp_path / "sample.json").read_text())
    assert record["held"] and record["seed"] == 7 and len(record["commit"]) == 40
    assert record["figures"] == {"passed": 3, "seeds": 5, "seed": 7}


def test_a_proof_that_fails_says_so(tmp_path: Path) -> None:
    assert not run(
        Proof("sample", "a sample", [sys.executable, "-c", "raise SystemExit(3)"]), seed=0, evidence=tmp_path
    )
    assert json.loads((tmp_path / "sample.json").read_text())["held"] is False


@pytest.mark.parametrize(
    ("line", "figures"),
    [
        ("==== 235 passed, 204 skipped in 312.40s (0:05:12) ====", {"passed": 235, "skipped": 204}),
        ("1 failed, 2 passed in 3.01s", {"failed": 1, "passed": 2}),
        ("nothing of the kind", {}),
    ],
)
def test_the_closing_line_is_read(line: str, figures: dict[str, int]) -> None:
    assert closing_figures(["some output", line]) == figures


def test_every_record_is_of_a_proof_that_exists() -> None:
    evidence = Path(__file__).resolve().parent.parent / "docs" / "evidence"
    assert {path.stem for path in evidence.glob("*.json")} <= {*PROOFS, "suite"}


def test_a_proof_without_its_data_says_that_it_was_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DATA", raising=False)
    monkeypatch.setattr(sys, "argv", ["proof", "injection"])
    with pytest.raises(SystemExit):
        main()
    assert "injection: not run, it needs DATA=<path>" in capsys.readouterr().err


def test_a_record_is_stale_when_it_failed_or_is_old_or_much_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, evidence = tmp_path / "repository", tmp_path / "evidence"
    code = repository / "culture" / "code.py"
    code.parent.mkdir(parents=True)
    evidence.mkdir()

    def git(*words: str) -> str:
        identity = ("-c", "user.name=Ori", "-c", "user.email=ori@example.org")
        done = subprocess.run(["git", *identity, *words], cwd=repository, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(text: str) -> str:
        code.write_text(text)
        git("add", ".")
        git("commit", "-q", "--allow-empty", "-m", "a change")
        return git("rev-parse", "HEAD")

    def why(commit: str, held: bool = True) -> str:
        (evidence / "sample.json").write_text(json.dumps({"held": held, "commit": commit}))
        return why_stale("sample", evidence, repository)

    monkeypatch.setitem(PROOFS, "sample", Proof("sample", "a sample", ["true"]))
    monkeypatch.setattr(proof, "MOST_COMMITS", 2)
    git("init", "-q")
    first = commit("a = 1\n" * 100)
    assert why(first) == "" and "did not hold" in why(first, held=False)
    assert "in no branch" in why("0" * 40)
    commit("a = 1\n" * 110)
    assert why(first) == ""
    commit("a = 2\n" * 110)
    assert why(first) == "210 of 110 lines of what it concerns changed since"
    last = commit("a = 2\n" * 110)
    assert why(first) == "3 commits old" and why(last) == ""
