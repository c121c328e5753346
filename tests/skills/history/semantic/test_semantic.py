"""The search by meaning beside a history that goes on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from culture.config.skills import Embeddings
from culture.skills.history.semantic.finder import SWITCHED_OFF
from culture.skills.history.semantic.worker import Worker
from culture.skills.history.store import Kept, Store, Unavailable, View
from tests.skills.history.entries import PLACE, SECOND, START, entry, private, redaction
from tests.skills.history.semantic.double import Double
from tests.skills.history.semantic.searches import Start, found, positions, stored
from tests.support.waiting import PATIENCE

DOG = "the puppy chased a cat through the garden"
MONEY = "the bank raised interest rates again"
CAR = "her engine would not start this morning"
ANIMALS = "animals running outside"


def write_all(store: Store, *texts: str) -> None:
    store.write([entry(seq, text) for seq, text in enumerate(texts)])


@pytest.mark.requirement("D10")
def test_what_is_nearest_comes_first(store: Store, begin: Start) -> None:
    write_all(store, MONEY, DOG, CAR)
    semantic = begin()
    assert semantic.why_not is None
    assert found(semantic, ANIMALS)[0] == DOG
    assert found(semantic, "vehicle trouble")[0] == CAR
    assert found(semantic, ANIMALS, limit=1) == [DOG]


def test_vectors_are_kept_with_model_and_dimension(store: Store, begin: Start, tmp_path: Path) -> None:
    write_all(store, MONEY, DOG)
    assert begin().caught_up(PATIENCE)
    assert set(stored(tmp_path).values()) == {(PLACE, "wordllama/l2_supercat_256", 256, 256)}
    assert (tmp_path / "vectors.db").stat().st_mode & 0o077 == 0


def test_a_new_message_is_found_after_a_note(store: Store, begin: Start) -> None:
    write_all(store, MONEY)
    semantic = begin()
    assert DOG not in found(semantic, ANIMALS)
    store.write([entry(7, DOG)])
    semantic.note()
    assert DOG in found(semantic, ANIMALS)


def test_one_that_comes_late_is_found_by_its_time(store: Store, begin: Start) -> None:
    store.write([entry(1_000_000, MONEY)])
    semantic = begin()
    assert found(semantic, "interest") == [MONEY]
    store.write([entry(1, DOG)])
    semantic.note(START + SECOND)
    assert DOG in found(semantic, ANIMALS)


def test_a_restart_catches_up(store: Store, begin: Start, tmp_path: Path) -> None:
    write_all(store, MONEY)
    first = begin()
    assert first.caught_up(PATIENCE)
    first.stop()
    store.write([entry(seq, f"{DOG} {seq}") for seq in range(10, 400)])
    assert found(begin(), ANIMALS, limit=1)[0].startswith(DOG)
    assert sorted(stored(tmp_path)) == positions(store)


def test_one_that_was_taken_back_is_gone(store: Store, begin: Start, tmp_path: Path) -> None:
    write_all(store, MONEY, DOG)
    semantic = begin()
    assert found(semantic, ANIMALS)[0] == DOG
    msgid = entry(1).msgid
    position = store.position(PLACE, msgid)
    assert position in stored(tmp_path)
    store.write([redaction(5, msgid)])
    assert DOG not in found(semantic, ANIMALS), "not shown from the moment on"
    assert position is not None
    semantic.forget(position)
    assert semantic.caught_up(PATIENCE)
    assert position not in stored(tmp_path)
    assert DOG not in found(semantic, ANIMALS)


def test_one_that_was_taken_back_meanwhile_is_gone_after_a_start(store: Store, begin: Start, tmp_path: Path) -> None:
    write_all(store, MONEY, DOG)
    first = begin()
    assert first.caught_up(PATIENCE)
    first.stop()
    store.write([redaction(5, entry(1).msgid)])
    assert begin().caught_up(PATIENCE)
    assert sorted(stored(tmp_path)) == positions(store)
    assert len(stored(tmp_path)) == 1


def test_what_is_no_longer_kept_is_gone(store: Store, begin: Start, tmp_path: Path) -> None:
    store.write([entry(1, DOG), entry(9, MONEY), entry(2, CAR, place="#cars")])
    semantic = begin()
    assert found(semantic, ANIMALS)[0] == DOG
    assert store.prune(PLACE, START + 5 * SECOND) == 1
    semantic.prune(PLACE, START + 5 * SECOND)
    assert found(semantic, ANIMALS) != [DOG]
    assert sorted(stored(tmp_path)) == positions(store)
    assert len(positions(store)) == 2


def test_the_vectors_go_with_a_channel_that_is_renamed(store: Store, begin: Start, tmp_path: Path) -> None:
    write_all(store, DOG)
    semantic = begin()
    assert found(semantic, ANIMALS) == [DOG]
    store.move(PLACE, "#pets", "#pets")
    semantic.move(PLACE, "#pets")
    assert found(semantic, ANIMALS, "#pets") == [DOG]
    assert found(semantic, ANIMALS) == []
    semantic.stop()
    store.move("#pets", "#zoo", "#zoo")
    assert found(begin(), ANIMALS, "#zoo") == [DOG], "also where nobody said so"
    assert [place for place, *_ in stored(tmp_path).values()] == ["#zoo"]


def test_closed_messages_are_shown_to_who_was_there(store: Store, begin: Start) -> None:
    store.write([entry(1, DOG, closed=True), entry(2, MONEY)])
    semantic = begin()
    assert DOG not in found(semantic, ANIMALS)
    assert found(semantic, ANIMALS, View(PLACE, closed_since=0))[0] == DOG
    assert DOG not in found(semantic, ANIMALS, View(PLACE, closed_since=START + 2 * SECOND))


def test_a_view_holds_for_ranks_and_times(store: Store, begin: Start) -> None:
    store.write([entry(1, DOG), entry(2, f"{DOG}!", status="@"), entry(3, MONEY)])
    semantic = begin()
    assert f"{DOG}!" not in found(semantic, ANIMALS)
    assert f"{DOG}!" in found(semantic, ANIMALS, View(PLACE, ranks=("", "@")))
    assert DOG not in found(semantic, ANIMALS, View(PLACE, since=START + 2 * SECOND))


def test_many_that_may_not_be_seen_do_not_hide_one_that_may(store: Store, begin: Start) -> None:
    store.write([entry(seq, f"{DOG} {seq}", closed=True) for seq in range(700)])
    store.write([entry(1000, "a dog in the park")])
    assert found(begin(), DOG) == ["a dog in the park"]


@pytest.mark.requirement("D10")
def test_another_channel_and_private_talk_are_not_searched(store: Store, begin: Start, tmp_path: Path) -> None:
    store.write([entry(1, DOG, place="#pets"), private(2, DOG, ("ada", "ada"), ("max", "max")), entry(3, MONEY)])
    semantic = begin()
    assert DOG not in found(semantic, ANIMALS)
    assert found(semantic, ANIMALS, "#nowhere") == []
    assert {place for place, *_ in stored(tmp_path).values()} == {PLACE, "#pets"}


@pytest.mark.parametrize("text", ["", "   ", "\x02\x0304\x0f", "\x00", "?" * 10_000, "犬", "🐕", "\ud7ff"])
def test_any_text_is_kept_and_asked(store: Store, begin: Start, text: str) -> None:
    write_all(store, text, DOG)
    semantic = begin()
    assert set(found(semantic, text)) <= {text, DOG}
    assert DOG in found(semantic, ANIMALS)


def test_another_model_replaces_the_vectors(store: Store, begin: Start, double: Double, tmp_path: Path) -> None:
    write_all(store, MONEY, DOG)
    first = begin()
    assert first.caught_up(PATIENCE)
    first.stop()
    assert found(begin(double.settings()), DOG)[0] == DOG
    assert set(stored(tmp_path).values()) == {(PLACE, "letters", 26, 26)}


@pytest.mark.parametrize("content", [b"this is no database, and long enough to be looked at" * 100, b""])
def test_a_damaged_file_is_made_anew(
    store: Store, begin: Start, tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "vectors.db").write_bytes(content)
    write_all(store, DOG)
    assert found(begin(), ANIMALS) == [DOG]
    assert ("made anew" in caplog.text) == bool(content)


def test_it_can_be_switched_off(store: Store, begin: Start, tmp_path: Path) -> None:
    semantic = begin(Embeddings(enabled=False))
    assert semantic.why_not == SWITCHED_OFF
    semantic.note()
    semantic.forget(1)
    with pytest.raises(Unavailable, match="switched off"):
        semantic.search(View(PLACE), DOG, 5, 1)
    assert not (tmp_path / "vectors.db").exists()


class Failing:
    """A store that is locked for a while, and then broken."""

    def __init__(self, store: Store, *errors: Exception) -> None:
        self._store = store
        self._errors = list(errors)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def messages(self, after: int, limit: int) -> Sequence[Kept]:
        if self._errors:
            raise self._errors.pop(0)
        return self._store.messages(after, limit)


def test_a_locked_store_is_tried_again(
    store: Store, begin: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("culture.skills.history.semantic.worker._PAUSES", (0.01,))
    write_all(store, DOG)
    semantic = begin(of=Failing(store, Unavailable("locked"), Unavailable("locked")))
    assert found(semantic, ANIMALS) == [DOG]
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "messages cannot be made ready for the search by meaning: locked"
    ]


def test_a_bug_ends_the_search_and_nothing_else(store: Store, begin: Start, caplog: pytest.LogCaptureFixture) -> None:
    semantic = begin(of=Failing(store, ZeroDivisionError()))
    worker: Worker = semantic._worker
    worker._thread.join(PATIENCE)
    assert semantic.why_not == "it has failed, and the server's log says why"
    assert "ZeroDivisionError" in caplog.text
    semantic.note()
