"""Long text → lines that fit (decision 6)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.protocol.message import Message
from culture.protocol.split import LONGEST_PREFIX, clip, cut_line, room, split_text
from culture.protocol.stream import LINE_LIMIT, oversize

texts = st.text(st.characters(exclude_categories=["Cs"])) | st.text("ab é🙂\n\r\0`\t \x1f\u0301\u200d\U0001f1e9")
long_texts = st.lists(texts, max_size=20).map("".join)


def without_blanks(text: str) -> str:
    return re.sub(r"[ \t\r\n\0]", "", text)


@given(long_texts, st.integers(4, 60))
def test_every_piece_fits_and_can_be_sent(text: str, limit: int) -> None:
    for piece in split_text(text, limit):
        assert 0 < len(piece.encode()) <= limit
        assert not set(piece) & set("\r\n\0")


@given(long_texts, st.integers(4, 60))
def test_nothing_is_lost_but_blanks_at_breaks(text: str, limit: int) -> None:
    assert without_blanks("".join(split_text(text, limit))) == without_blanks(text)


@given(st.text("ab  \té🙂", max_size=200), st.integers(4, 60))
def test_inside_a_fence_not_even_blanks_are_lost(line: str, limit: int) -> None:
    opening, *pieces, closing = split_text(f"```\n{line}\n```", limit)
    assert opening == closing == "```"
    assert "".join(pieces) == (line if line.strip(" \t") else " ")


@given(st.lists(st.text("abcdé", min_size=1, max_size=10), min_size=1), st.integers(20, 60))
def test_words_that_fit_stay_whole(words: list[str], limit: int) -> None:
    assert [word for piece in split_text(" ".join(words), limit) for word in piece.split(" ")] == words


@given(st.text("ab ", max_size=50))
def test_what_fits_is_left_alone(line: str) -> None:
    assert split_text(line, 50) == ([line] if line.strip() else [])


@given(
    st.lists(st.sampled_from(["👨‍👩‍👧‍👦", "é", "e\u0301", "🇩🇪", "👍🏽", "❤️", "x", "日"]), max_size=40),
    st.integers(30, 50),
)
def test_what_people_see_as_one_character_stays_one(graphemes: list[str], limit: int) -> None:
    rest = list(graphemes)
    for piece in split_text("".join(graphemes), limit):
        while piece:
            assert piece.startswith(rest[0])
            piece = piece.removeprefix(rest.pop(0))
    assert not rest


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\0", "\n\n", "\r\n \r\n"])
def test_a_line_end_ends_a_piece(end: str) -> None:
    assert split_text(f"one{end}QUIT :two", 100) == ["one", "QUIT :two"]


def test_code_stays_readable() -> None:
    text = "look:\n\n```python\ndef f():\n    return 1\n\n\tx\n```\n\ndone"
    assert split_text(text, 100) == ["look:", "```python", "def f():", "    return 1", " ", "\tx", "```", "done"]


def test_a_fence_on_one_line_is_no_open_fence() -> None:
    assert split_text("```x```\n\ny", 100) == ["```x```", "y"]


def test_indentation_is_kept_and_a_long_word_is_cut() -> None:
    assert split_text("  aaaaaaaaaa bb", 8) == ["  aaaaaa", "aaaa bb"]
    assert split_text(" " * 20 + "x", 8) == ["    x"]


def test_formatting_is_no_blank() -> None:
    """\\x1f is IRC's underline, and whitespace to Python"""
    assert split_text("\x1f", 10) == ["\x1f"]


def test_half_a_surrogate_does_no_harm() -> None:
    assert split_text("a\ud800b", 10) == ["a?b"]


def test_nothing_is_no_piece() -> None:
    assert split_text("", 10) == []
    assert split_text(" \n\t\n\0", 10) == []


def test_there_must_be_room_for_a_character() -> None:
    with pytest.raises(ValueError, match="room"):
        split_text("x", 3)


@pytest.mark.requirement("A29")
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(without_blanks), st.integers(1, 40))
def test_the_pieces_fill_a_line_and_no_more(text: str, times: int) -> None:
    """RFC 2812 §2.3: as relayed, with the longest sender"""
    left = room(LONGEST_PREFIX, "PRIVMSG", "#general")
    for piece in split_text(text * times, left):
        relayed = str(Message("PRIVMSG", ("#general", piece), LONGEST_PREFIX)).encode()
        assert oversize(relayed) is None


def test_the_room_is_exact() -> None:
    left = room("spark-ori!ori@localhost", "PRIVMSG", "#généraux")
    line = bytes(Message("PRIVMSG", ("#généraux", " " * left), "spark-ori!ori@localhost"))
    assert len(line) == LINE_LIMIT


def test_fifty_kilobytes_on_one_line() -> None:
    pieces = split_text("lorem ipsum " * 4000, 400)
    assert len(pieces) == 122
    assert " ".join(pieces) == ("lorem ipsum " * 4000)


@given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n\0")), st.integers(4, 40))
def test_a_line_that_is_cut_is_the_same_line_when_joined(line: str, limit: int) -> None:
    pieces = cut_line(line, limit)
    assert "".join(pieces) == line
    assert all(len(piece.encode()) <= limit for piece in pieces)
    assert all(pieces) or pieces == [""]


@given(st.text(), st.integers(0, 60))
def test_a_clipped_text_is_the_longest_beginning_that_fits(text: str, size: int) -> None:
    kept = clip(text, size)
    whole = text.encode(errors="replace").decode()
    assert whole.startswith(kept)
    assert len(kept.encode()) <= size
    assert kept == whole or len(whole[: len(kept) + 1].encode()) > size
