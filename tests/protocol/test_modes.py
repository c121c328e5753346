"""MODE strings ↔ changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.protocol.modes import ModeChange, ModeKind, format_changes, groups, parse_changes

KINDS = {
    "b": ModeKind.LIST,
    "e": ModeKind.LIST,
    "k": ModeKind.ALWAYS,
    "l": ModeKind.WHEN_SET,
    "n": ModeKind.FLAG,
    "t": ModeKind.FLAG,
    "o": ModeKind.PREFIX,
    "v": ModeKind.PREFIX,
}

words = st.text(st.characters(exclude_characters="\r\n\0 ", exclude_categories=["Cs"]), min_size=1, max_size=40)


@st.composite
def changes(draw: st.DrawFn) -> ModeChange:
    mode, add = draw(st.sampled_from(list(KINDS))), draw(st.booleans())
    bare = KINDS[mode] is ModeKind.FLAG or (KINDS[mode] is ModeKind.WHEN_SET and not add)
    return ModeChange(add, mode, None if bare else draw(words))


@given(st.lists(changes()), st.integers(1, 12), st.integers(10, 400))
def test_changes_survive_being_written(asked: list[ModeChange], limit: int, room: int) -> None:
    """RFC 2812 §3.2.3, over as many lines as it takes"""
    lines = format_changes(asked, limit, room)
    read = [parse_changes(line, KINDS) for line in lines]
    assert [change for found, _ in read for change in found] == asked
    assert not any(unknown for _, unknown in read)


@given(st.lists(changes(), min_size=1), st.integers(1, 12), st.integers(10, 400))
def test_no_line_has_more_than_fits(asked: list[ModeChange], limit: int, room: int) -> None:
    for group, line in zip(groups(asked, limit, room), format_changes(asked, limit, room), strict=True):
        assert len(line) - 1 <= limit
        assert len(group) == 1 or len(" ".join(line).encode()) <= room
        assert format_changes(group, limit, room) == [line]


@given(st.lists(st.text("+-bkotnlxyz #", max_size=8), max_size=5))
def test_any_words_can_be_read(params: list[str]) -> None:
    found, unknown = parse_changes(params, KINDS)
    assert all(change.mode in KINDS for change in found)
    assert not set(unknown) & set(KINDS)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (
            ["+ov-b", "a", "b", "m"],
            [ModeChange(True, "o", "a"), ModeChange(True, "v", "b"), ModeChange(False, "b", "m")],
        ),
        (["nt"], [ModeChange(True, "n"), ModeChange(True, "t")]),
        (["+n-t"], [ModeChange(True, "n"), ModeChange(False, "t")]),
        (["b"], [ModeChange(True, "b")]),
        (["+b"], [ModeChange(True, "b")]),
        (["-b"], [ModeChange(False, "b")]),
        (["+b", ""], [ModeChange(True, "b")]),
        (["be"], [ModeChange(True, "b"), ModeChange(True, "e")]),
        (["+o"], []),
        (["+o", ""], []),
        (["+k"], []),
        (["-k"], [ModeChange(False, "k")]),
        (["-k", "x"], [ModeChange(False, "k", "x")]),
        (["+k", ""], [ModeChange(True, "k", "")]),
        (["+l"], []),
        (["+l", "5"], [ModeChange(True, "l", "5")]),
        (["-l", "5"], [ModeChange(False, "l")]),
        (["+o", "a", "-v", "b"], [ModeChange(True, "o", "a"), ModeChange(False, "v", "b")]),
        (["+n", "extra", "words"], [ModeChange(True, "n")]),
        (["+b", "-n"], [ModeChange(True, "b", "-n")]),
        (["+", "-"], []),
        ([""], []),
        ([], []),
    ],
)
def test_what_a_mode_line_asks_for(params: list[str], expected: list[ModeChange]) -> None:
    """RFC 2812 §3.2.3"""
    assert parse_changes(params, KINDS) == (expected, [])


def test_unknown_letters_are_named_once_and_take_no_parameter() -> None:
    assert parse_changes(["+xoxy", "a"], KINDS) == ([ModeChange(True, "o", "a")], ["x", "y"])
    assert parse_changes(["x", "n"], KINDS) == ([], ["x"])


def test_where_nothing_is_said_the_caller_decides() -> None:
    assert parse_changes(["n"], KINDS, default_add=False) == ([ModeChange(False, "n")], [])


def test_one_line_for_changes_of_both_signs() -> None:
    asked = [ModeChange(True, "o", "a"), ModeChange(True, "n"), ModeChange(False, "t"), ModeChange(False, "b", "m")]
    assert format_changes(asked) == [("+on-tb", "a", "m")]
    assert format_changes([]) == []
