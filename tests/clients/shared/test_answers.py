"""What a text says to a question: taken at its word, or asked back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.clients.shared.answers import CHOICES, Kind, is_word, question_ids, read, without_ids

WORDS = ["please", "go", "ahead", "deploy", "now", "files", "branch", "?", "but", "not", "wait", "if", "`yes`", "know"]
DOUBTS = {"?", "but", "not", "wait", "if"}


@pytest.mark.fault("F10")
@pytest.mark.requirement("J19")
@pytest.mark.parametrize(
    ("text", "kind", "choice"),
    [
        ("yes", Kind.ANSWER, "yes"),
        ("looks safe, yes", Kind.ANSWER, "yes"),
        ("yes, go ahead", Kind.ANSWER, "yes"),
        ("YES!!!", Kind.ANSWER, "yes"),
        ("No.", Kind.ANSWER, "no"),
        ("abort", Kind.ANSWER, "abort"),
        ("yes q7", Kind.ANSWER, "yes"),
        ("q7: no", Kind.ANSWER, "no"),
        ("yes but only the temp files", Kind.UNCLEAR, ""),
        ("yes, if the tests pass", Kind.UNCLEAR, ""),
        ("yes unless it is Friday", Kind.UNCLEAR, ""),
        ("everything except main, yes", Kind.UNCLEAR, ""),
        ("no, don't", Kind.UNCLEAR, ""),
        ("no, don’t", Kind.UNCLEAR, ""),
        ("yes?", Kind.UNCLEAR, ""),
        ("wait, yes", Kind.UNCLEAR, ""),
        ("not yes", Kind.UNCLEAR, ""),
        ("yes or no", Kind.UNCLEAR, ""),
        ("which files? Are any of them in active branches?", Kind.ASIDE, ""),
        ("I know", Kind.ASIDE, ""),
        ("yesterday", Kind.ASIDE, ""),
        ("`yes`", Kind.ASIDE, ""),
        ("да", Kind.ASIDE, ""),
        ("", Kind.ASIDE, ""),
    ],
)
def test_a_choice_is_taken_at_its_word_or_asked_back(text: str, kind: Kind, choice: str) -> None:
    reading = read(text, CHOICES)
    assert (reading.kind, reading.choice) == (kind, choice)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("use cmake 3.28", Kind.ANSWER), ("which one?", Kind.ASIDE), ("yes but later", Kind.ANSWER), ("  ", Kind.ASIDE)],
)
def test_an_open_question_takes_any_text_but_a_question(text: str, kind: Kind) -> None:
    assert read(text, ()).kind is kind


@given(st.lists(st.sampled_from([*CHOICES, *WORDS]), max_size=6))
def test_a_choice_is_read_only_where_one_is_named_without_a_doubt(words: list[str]) -> None:
    reading = read(" ".join(words), CHOICES)
    named = {word for word in words if word in CHOICES}
    if reading.kind is Kind.ANSWER:
        assert named == {reading.choice}
        assert not DOUBTS & set(words)
    else:
        assert len(named) != 1 or DOUBTS & set(words)


@pytest.mark.parametrize(
    ("text", "numbers", "rest"),
    [
        ("yes q7", (7,), "yes"),
        ("q7 yes", (7,), "yes"),
        ("q7: yes", (7,), "yes"),
        ("yes, Q7.", (7,), "yes"),
        ("yes (q7)", (7,), "yes"),
        ("q12", (12,), ""),
        ("deny q1 q2 q3", (1, 2, 3), "deny"),
        ("look at q4 in the sheet", (), "look at q4 in the sheet"),
        ("yes q0", (), "yes q0"),
        ("yes iraq7", (), "yes iraq7"),
        ("yes q7x", (), "yes q7x"),
        ("q99999999999 yes", (), "q99999999999 yes"),
    ],
)
def test_an_id_counts_at_the_beginning_and_at_the_end(text: str, numbers: tuple[int, ...], rest: str) -> None:
    assert question_ids(text) == numbers
    assert without_ids(text) == rest


@given(st.text(max_size=60))
def test_no_text_breaks_the_reading(text: str) -> None:
    assert read(text, CHOICES).choice in ("", *CHOICES)
    assert len(question_ids(text)) <= len(text)
    assert len(without_ids(text)) <= len(text)


def test_a_word_is_a_word_with_or_without_an_id() -> None:
    assert is_word("Deny q7", "deny")
    assert is_word("abort.", "deny", "abort")
    assert not is_word("deny it", "deny")
