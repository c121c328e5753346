"""Vectors from an endpoint that speaks OpenAI's embeddings, and what can go wrong with it."""

import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from culture.config.skills import Embeddings
from culture.skills.history.semantic.embedder import Indigestible
from culture.skills.history.semantic.endpoint import Endpoint
from culture.skills.history.store import Store, Unavailable, View
from tests.skills.history.entries import PLACE, entry
from tests.skills.history.semantic.double import Answer, Double, always, refusing, right, shorter, vector
from tests.skills.history.semantic.searches import Start, found, positions, stored
from tests.support.waiting import PATIENCE

KEY = "sk-very-secret"


@pytest.mark.requirement("D10")
def test_it_finds_with_the_vectors_of_the_endpoint(store: Store, begin: Start, double: Double) -> None:
    store.write([entry(1, "aaaa bbbb"), entry(2, "xxxx yyyy"), entry(3, "mmmm nnnn")])
    assert found(begin(double.settings()), "yx", limit=1) == ["xxxx yyyy"]
    assert {question["model"] for question in double.asked} == {"letters"}


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/", "/v1/embeddings"])
def test_the_address_may_be_short_or_long(double: Double, suffix: str) -> None:
    assert Endpoint(double.settings(suffix)).embed(["ab", "c"]).tolist() == [vector("ab"), vector("c")]
    assert double.paths == ["/v1/embeddings"]


def test_a_path_before_it_stays(double: Double) -> None:
    Endpoint(double.settings("/openai")).embed(["ab"])
    assert double.paths == ["/openai/v1/embeddings"]


@pytest.mark.parametrize(("key", "shown"), [(KEY, f"Bearer {KEY}"), (None, None)])
def test_the_key_is_shown_to_the_endpoint_alone(
    double: Double, key: str | None, shown: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    settings = double.settings(key=key)
    Endpoint(settings).embed(["ab"])
    assert double.keys == [shown]
    assert KEY not in repr(settings) + caplog.text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (always(500), "answered 500"),
        (always(401, KEY.encode()), "answered 401"),
        (always(302), "answered 302"),
        (always(200, b"<html>"), "something else than vectors"),
        (always(200, b"[1, 2]"), "something else than vectors"),
        (always(200, b'{"data": []}'), "something else than a vector for each text"),
        (always(200, b'{"data": [{"index": 0, "embedding": []}]}'), "something else than a vector for each"),
        (always(200, b'{"data": [{"index": 0, "embedding": [NaN, 1]}]}'), "something else than a vector for each"),
        (always(200, b'{"data": [{"index": 0, "embedding": "AAAA"}]}'), "something else than vectors"),
        (always(200, b'{"data": [{"index": 0, "embedding": [1e999]}]}'), "something else than a vector for each"),
    ],
)
def test_what_is_wrong_is_said_without_the_key(double: Double, answer: Answer, text: str) -> None:
    double.answer = answer
    with pytest.raises(Unavailable, match=text) as raised:
        Endpoint(double.settings(key=KEY)).embed(["ab"])
    assert KEY not in str(raised.value)


def test_nobody_there_is_said(double: Double) -> None:
    settings = Embeddings(url="http://127.0.0.1:1", model="letters")
    with pytest.raises(Unavailable, match="not to be reached"):
        Endpoint(settings).embed(["ab"])


def test_an_endpoint_that_does_not_answer_is_given_up(double: Double) -> None:
    double.may_answer.clear()
    with pytest.raises(Unavailable, match="takes too long"):
        Endpoint(double.settings(timeout=0.1)).embed(["ab"])
    with pytest.raises(Unavailable, match="takes too long"):
        Endpoint(double.settings()).embed(["ab"], seconds=0.1)


def test_a_refused_text_is_told_from_a_failing_endpoint(double: Double) -> None:
    double.answer = always(400)
    with pytest.raises(Indigestible):
        Endpoint(double.settings()).embed(["ab"])


def test_a_question_during_a_failure_is_told_why(store: Store, begin: Start, double: Double) -> None:
    store.write([entry(1, "aaaa")])
    semantic = begin(double.settings())
    assert semantic.caught_up(PATIENCE)
    double.answer = always(503)
    with pytest.raises(Unavailable, match="the embeddings endpoint answered 503"):
        semantic.search(View(PLACE), "a", 5, 1)
    double.answer = shorter
    with pytest.raises(Unavailable, match="vectors of 3 numbers where it gave 26"):
        semantic.search(View(PLACE), "a", 5, 1)
    double.answer = right
    assert found(semantic, "a") == ["aaaa"]


def test_one_that_is_away_at_the_start_is_tried_again(
    store: Store, begin: Start, double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("culture.skills.history.semantic.worker._PAUSES", (0.01,))
    store.write([entry(1, "aaaa")])
    double.answer = always(500)
    semantic = begin(double.settings())
    with pytest.raises(Unavailable, match="answered 500"):
        semantic.search(View(PLACE), "a", 5, PATIENCE)
    assert semantic.why_not is None
    double.answer = right
    assert found(semantic, "a") == ["aaaa"]


def test_one_that_fails_meanwhile_loses_nothing(
    store: Store, begin: Start, double: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("culture.skills.history.semantic.worker._PAUSES", (0.01,))
    answers = [right, always(500), right, shorter, right, always(200, b"?")]

    def changing(texts: list[str]) -> tuple[int, bytes]:
        return (answers.pop(0) if answers else right)(texts)

    double.answer = changing
    store.write([entry(seq, f"message {seq}") for seq in range(300)])
    assert begin(double.settings()).caught_up(PATIENCE)
    assert answers == []
    assert sorted(stored(tmp_path)) == positions(store)


def test_a_text_that_is_refused_is_left_out_and_asked_once(
    store: Store, begin: Start, double: Double, tmp_path: Path
) -> None:
    double.answer = refusing("poison")
    store.write([entry(seq, "poison" if seq == 20 else f"wine {seq}") for seq in range(50)])
    semantic = begin(double.settings())
    assert len(found(semantic, "wine", limit=50)) == 49
    assert sorted(length for *_, length in stored(tmp_path).values()) == [0, *[26] * 49]
    semantic.stop()
    before = double.texts.count("poison")
    assert begin(double.settings()).caught_up(PATIENCE)
    assert double.texts.count("poison") == before


def test_an_endpoint_that_refuses_everything_is_no_reason_to_leave_texts_out(
    store: Store, begin: Start, double: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("culture.skills.history.semantic.worker._PAUSES", (0.01,))
    store.write([entry(1, "aaaa")])
    semantic = begin(double.settings())
    assert semantic.caught_up(PATIENCE)
    refusals = [always(400)] * 6

    def changing(texts: list[str]) -> tuple[int, bytes]:
        return (refusals.pop() if refusals else right)(texts)

    double.answer = changing
    store.write([entry(2, "aabb")])
    semantic.note()
    assert found(semantic, "a") == ["aaaa", "aabb"]
    assert refusals == []


def test_it_stops_while_the_endpoint_does_not_answer(store: Store, begin: Start, double: Double) -> None:
    double.may_answer.clear()
    semantic = begin(double.settings(timeout=3600))
    assert double.was_asked.wait(PATIENCE)
    semantic.stop()
    assert not semantic._worker._thread.is_alive()


def test_a_question_waits_no_longer_than_it_may(store: Store, begin: Start, double: Double) -> None:
    semantic = begin(double.settings(timeout=3600))
    assert semantic.caught_up(PATIENCE)
    double.may_answer.clear()
    begun = time.monotonic()
    with pytest.raises(Unavailable, match="takes too long"):
        semantic.search(View(PLACE), "a", 5, 0.1)
    assert time.monotonic() - begun < PATIENCE


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ({"url": "http://127.0.0.1:8080"}, "model"),
        ({"url": "127.0.0.1:8080", "model": "m"}, "url"),
        ({"url": "ftp://host", "model": "m"}, "url"),
        ({"url": "http://", "model": "m"}, "url"),
        ({"url": "http://me:secret@host", "model": "m"}, "url"),
        ({"url": "http://host:99999", "model": "m"}, "url"),
        ({"url": "http://host/?a=b", "model": "m"}, "url"),
        ({"url": "http://host", "model": "m", "key": "two words"}, "key"),
        ({"url": "http://host", "model": "m", "key": "line\nbreak"}, "key"),
        ({"url": "http://host", "model": "m", "key": ""}, "key"),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(said: dict[str, str], where: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Embeddings.model_validate(said)
    (error,) = raised.value.errors()
    key = getattr(error.get("ctx", {}).get("error"), "key", ())
    assert (*error["loc"], *key) == (where,)
    assert "secret" not in error["msg"]
