"""Untrusted text in a line: whatever it holds, it stays in its line and commands no terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.skills.logger.text import clean


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hello", "hello"),
        ("naïve 日本 🙂", "naïve 日本 🙂"),
        ("a\tb", "a\tb"),
        ("\x02bold\x0f \x0304,12red\x03 \x1funder\x1f", "bold red under"),
        ("\x033 apples", " apples"),
        ("\x04FF0000hex", "hex"),
        ("a\r\nb", "a␍␊b"),
        ("\x1b[2J", "␛[2J"),
        ("\x00\x7f", "␀␡"),
        ("\x85\x9b\u2028\u202e", "����"),
    ],
)
def test_text_as_it_is_shown(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.text(st.characters()))
def test_nothing_ends_a_line_or_begins_a_terminal_sequence(text: str) -> None:
    shown = clean(text)
    assert len(f"a{shown}z".splitlines()) == 1
    assert all(character == "\t" or ord(character) >= 0x20 for character in shown)
    assert not set(shown) & set("\x7f\x9b\u202e")
    shown.encode()


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Cf", "Zl", "Zp"])))
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert clean(text) == text
