"""The table of what each backend can do: written from what tests noted, and as the runners say themselves."""

import json
from pathlib import Path

import pytest

from culture.clients.scripted.agent_runner import ScriptedRunner
from culture.clients.shared.backends import backend, installed, runner_class
from culture.clients.shared.queued import QueuedRunner
from culture.clients.shared.turn import Can, RunnerSetup
from tests.support import seen
from tools import matrix
from tools.matrix import COLUMNS, NOT_SEEN, PAGE, collected, filled, table, written

ABILITIES = {"resume": Can.RESUME, "compact": Can.COMPACT, "clear": Can.CLEAR}
FIGURES = ("compact", "clear", "cost", "context", "mcp", "permission")
SAID = {
    "resume": {"yes", "after a stop", "no", NOT_SEEN},
    "usage": {"yes", "yes, in the turn", "no", NOT_SEEN},
    "whisper": {"after a tool", "next irc_* call or prompt", NOT_SEEN},
    **{key: {"yes", "no", NOT_SEEN} for key in FIGURES},
}
PLAYED = {"backend": "scripted", "program": "culture", "version": "0.1.0"}


def test_facts_of_one_program_are_one_row(tmp_path: Path) -> None:
    lines = [{**PLAYED, "resume": "yes"}, {}, {**PLAYED, "cost": "no"}]
    (tmp_path / "1.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    rows = collected(tmp_path)
    assert rows == {("scripted", "culture"): {**PLAYED, "resume": "yes", "cost": "no"}}
    heading, rule, row = table(rows).splitlines()
    assert heading.count("|") == rule.count("|") == row.count("|") == len(COLUMNS) + 1
    assert row.startswith("| scripted | culture | 0.1.0 | yes | ? | ? | ? | no |")


def test_a_fact_that_no_column_is_for_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text(json.dumps({**PLAYED, "colour": "green"}))
    with pytest.raises(SystemExit, match="no column for colour"):
        collected(tmp_path)


def test_a_program_that_was_not_tried_keeps_its_row() -> None:
    page = f"before\n{matrix.BEGIN}\n{table({('a', 'b'): {'backend': 'a', 'program': 'b'}})}\n{matrix.END}\nafter\n"
    page = filled(page, {("scripted", "culture"): PLAYED})
    assert list(written(page)) == [("a", "b"), ("scripted", "culture")]
    assert page.startswith("before\n") and page.endswith("\nafter\n")
    assert filled(page, {}) == page


def test_nothing_is_noted_where_nobody_collects(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(seen, "_FOLDER", None)
    monkeypatch.chdir(tmp_path)
    runner = ScriptedRunner(RunnerSetup("spark-agent", tmp_path))
    seen.seen(runner, resume="yes")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(seen, "_FOLDER", str(tmp_path))
    seen.seen(runner, resume="yes")
    ((key, row),) = collected(tmp_path).items()
    assert key == ("scripted", "culture") and row["resume"] == "yes"


def test_the_page_has_a_row_for_every_backend_in_the_words_of_the_table() -> None:
    rows = written(PAGE.read_text(encoding="utf-8"))
    assert {name for name, _ in rows} == installed().keys()
    for (name, program), row in rows.items():
        for key, words in SAID.items():
            assert row[key] in words, f"{name} ({program}): {key}"


@pytest.mark.parametrize("name", ["claude", "codex", "copilot", "scripted"])
def test_the_page_says_what_the_runner_says_of_itself(name: str) -> None:
    runner = runner_class(backend(name))
    assert issubclass(runner, QueuedRunner)
    (row,) = [row for (kind, _), row in written(PAGE.read_text(encoding="utf-8")).items() if kind == name]
    assert {key: row[key] for key in ABILITIES} == {
        key: "yes" if ability in runner.can else "no" for key, ability in ABILITIES.items()
    }
