"""The long proof: it continues behind the seeds that were run, and adds them up."""

import json
from pathlib import Path
from typing import Any

from tests.simulation.proof import earlier, following, resumed, summary


def _range(first: int, count: int, commit: str = "one", servers: int = 2) -> dict[str, Any]:
    return {
        "servers": servers,
        "first": first,
        "count": count,
        "minutes": 1.0,
        "load": 2.0,
        "virtual_hours": 0.5,
        "receipted": 10,
        "wrong": [],
        "commit": commit,
    }


def test_parts_of_a_run_are_joined_and_runs_are_added_up() -> None:
    figures = summary([_range(1000, 50, "old")], [_range(1050, 20), _range(1070, 30), _range(1000, 5, servers=3)])
    assert (figures["seeds"], figures["seeds_in_all_runs"]) == (55, 105)
    assert [(run["commit"], run["servers"], run["first"], run["count"]) for run in figures["runs"]] == [
        ("old", 2, 1000, 50),
        ("one", 2, 1050, 50),
        ("one", 3, 1000, 5),
    ]
    assert figures["runs"][1]["receipted"] == 20


def test_a_run_begins_behind_all_seeds_before_it() -> None:
    ranges = [_range(1000, 50, "old"), _range(1050, 20), _range(1000, 5, servers=3)]
    assert [following(ranges, servers) for servers in (2, 3, 5)] == [1070, 1005, 1000]


def test_an_interrupted_run_of_the_same_commit_is_continued(tmp_path: Path) -> None:
    progress = tmp_path / "simulation.json"
    assert resumed(progress, "one") == []
    progress.write_text(json.dumps([_range(1000, 50)]))
    assert resumed(progress, "one") == [_range(1000, 50)]
    assert resumed(progress, "two") == []


def test_earlier_runs_are_read_from_the_record(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    assert earlier(record) == []
    record.write_text(json.dumps({"figures": summary([], [_range(1000, 50)])}))
    assert earlier(record) == [_range(1000, 50)]
