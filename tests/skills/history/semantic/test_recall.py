"""How much is found by meaning that no word finds."""

import pytest

from culture.skills.history.store import Store, View
from culture.skills.history.words import query
from tests.skills.history.entries import PLACE, entry
from tests.skills.history.semantic.paraphrases import channel, questions, shared
from tests.skills.history.semantic.searches import Start, found

FIRST = 5


def test_no_question_has_a_word_of_its_message() -> None:
    assert len(questions()) == 40
    assert {question.ask: shared(*question) for question in questions() if shared(*question)} == {}


@pytest.mark.parametrize(
    ("one", "other"), [("the build", "it was building"), ("a cert", "the certificate"), ("Times", "timing")]
)
def test_a_shared_word_would_be_noticed(one: str, other: str) -> None:
    assert shared(one, other)


def test_the_messages_lie_among_many_others() -> None:
    said = channel()
    assert len(said) == len(set(said)) >= 440
    assert {question.about for question in questions()} <= set(said)


@pytest.mark.requirement("D10")
def test_meaning_finds_what_words_do_not(store: Store, begin: Start) -> None:
    store.write([entry(seq, text) for seq, text in enumerate(channel())])
    semantic = begin()
    by_meaning = [q for q in questions() if q.about in found(semantic, q.ask, limit=FIRST)]
    by_words = [
        q
        for q in questions()
        if q.about in [each.entry.text for each in store.search(View(PLACE), query(q.ask), FIRST, 10)]
    ]
    assert len(by_meaning) >= 14
    assert len(by_words) <= 1
