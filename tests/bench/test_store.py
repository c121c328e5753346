"""The store's benchmark: the same speech every time, and every question asked."""

import json
from collections import Counter
from pathlib import Path

import pytest

from bench.speech import CHANNELS, QUIET, speech
from bench.store import QUESTIONS, main
from culture.skills.history.entry import Sort


def test_the_speech_is_the_same_every_time() -> None:
    assert list(speech(300)) == list(speech(300))


def test_the_speech_is_in_order_and_of_all_kinds() -> None:
    said = list(speech(20_000))
    assert [entry.at for entry in said] == sorted(entry.at for entry in said)
    sorts = Counter(entry.sort for entry in said)
    assert 0.04 < sorts[Sort.EVENT] / len(said) < 0.06
    places = Counter(entry.place for entry in said)
    assert places[QUIET] == 2
    assert places[CHANNELS[0]] > 5 * places[CHANNELS[-1]] > 0
    assert any(" " in place for place in places)


def test_every_question_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.json"
    assert main(["--messages", "2000", "--seconds", "0.02", "--json", str(path)]) == 0
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["messages"] == 2_000
    assert record["store"] == "sqlite"
    assert record["written_per_second"] > 0
    assert list(record["questions"]) == list(QUESTIONS)
    assert all(found["asked"] > 1 for found in record["questions"].values())
    printed = capsys.readouterr().out
    assert all(name in printed for name in QUESTIONS)
