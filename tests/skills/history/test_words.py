"""The words that a text is found by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.skills.history.words import MOST_TERMS, Query, fits, indexed, plain, query, words

anything = st.text()
sayable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, world!", ["hello", "world"]),
        ("spark-harper", ["spark", "harper"]),
        ("snake_case __init__", ["snake", "case", "init"]),
        ("it's", ["it", "s"]),
        ("Café", ["cafe"]),
        ("日本語", ["日", "本", "語", "日本", "本語"]),
        ("C言語", ["c", "言", "語", "言語"]),
        ("ok👍🏽", ["ok", "👍", "🏽"]),
        ("\ue0001 \uf8ff", ["1"]),
        ("… – “”", []),
        ("", []),
    ],
)
def test_the_words_of_a_text(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "terms", "needles"),
    [
        ("Hello world hello", ("hello", "world"), ()),
        ("C++", ("c",), ("c++",)),
        ("it's", ("it", "s"), ("it's",)),
        ("spark-harper", ("spark", "harper"), ("spark-harper",)),
        ("日", ("日",), ()),
        ("日本", ("日本",), ()),
        ("日本語", ("日本", "本語"), ("日本語",)),
        ("👍", ("👍",), ()),
        ("++", (), ("++",)),
        (" \x02\t", (), ()),
    ],
)
def test_what_a_question_asks_for(text: str, terms: tuple[str, ...], needles: tuple[str, ...]) -> None:
    assert query(text) == Query(terms, needles)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x02bold\x02 w\x1ford", "bold word"),
        ("\x0304,01red\x03 \x03,5", "red ,5"),
        ("\x04ff0000,00FF00hex\x04", "hex"),
        ("a\tb\x01", "a b "),
        ("\x0312345", "345"),
        ("line one\nline two", "line one line two"),
    ],
)
def test_plain_text_has_no_colours(text: str, expected: str) -> None:
    assert plain(text) == expected


def test_a_question_is_of_bounded_size() -> None:
    asked = query(" ".join(f"w{number}+" for number in range(1_000)))
    assert len(asked.terms) == len(asked.needles) == MOST_TERMS


@given(sayable)
def test_every_word_of_a_text_asks_for_words_that_it_has(text: str) -> None:
    known = set(words(text))
    for word in plain(text).split():
        asked = query(word)
        assert known.issuperset(asked.terms)
        assert fits(asked, text)


@given(sayable)
def test_a_text_asks_for_itself(text: str) -> None:
    asked = query(text)
    assert set(words(text)).issuperset(asked.terms)
    assert fits(asked, text)


@given(anything, anything)
def test_no_two_texts_are_a_problem(one: str, other: str) -> None:
    assert isinstance(fits(query(one), other), bool)
    assert isinstance(indexed(one), str)


@given(sayable)
def test_the_index_is_told_of_the_same_words(text: str) -> None:
    separated = "".join(c if not c.isascii() or c.isalnum() else " " for c in indexed(text))
    assert [word for word in separated.lower().split(" ") if word] == words(text)
