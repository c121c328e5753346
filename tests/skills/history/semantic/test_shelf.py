"""What is held in memory, and how it is ranked."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.runtime import Runtime
from culture.skills.history.semantic.codes import Codes, coded
from culture.skills.history.semantic.embedder import Floats
from culture.skills.history.semantic.pace import Pace
from culture.skills.history.semantic.shelf import Positions, Rows, Shelf

WIDTH = 4
numbers = st.floats(-10, 10, width=32)
vectors = st.lists(st.lists(numbers, min_size=WIDTH, max_size=WIDTH), min_size=1, max_size=40)


def rows_of(codes: Codes, first: int = 0) -> Rows:
    return Rows(np.arange(first, first + len(codes), dtype=np.int64), codes)


def all_ranked(rows: Rows, question: Floats, since: int = 0, first: int = 3) -> list[int]:
    return [position for some in rows.snapshot().ranked(question, since, first) for position in some]


def plainly_ranked(codes: Codes, question: Floats) -> list[tuple[int, float]]:
    """The same without any care for speed."""
    asked = question / np.linalg.norm(question)
    scores = [float(code @ asked / np.linalg.norm(code)) for code in codes.astype(np.float64)]
    return [(number, score) for number, score in enumerate(scores) if score > 1e-4]


@given(vectors, st.lists(st.floats(0.5, 9, width=32), min_size=WIDTH, max_size=WIDTH))
def test_the_ranking_is_by_the_angle(given: list[list[float]], asked: list[float]) -> None:
    codes, question = coded(np.array(given, np.float32)), np.array(asked, np.float32)
    codes = codes[codes.any(axis=1)]
    if len(codes) == 0:
        return
    scores = dict(plainly_ranked(codes, question))
    ranked = [position for position in all_ranked(rows_of(codes), question) if position in scores]
    assert sorted(ranked) == sorted(scores)
    for better, worse in pairwise(ranked):
        assert scores[better] >= scores[worse] - 1e-3


@given(vectors)
def test_a_code_keeps_the_direction(given: list[list[float]]) -> None:
    rows = np.array(given, np.float32)
    for row, code in zip(rows.astype(np.float64), coded(rows).astype(np.float64), strict=True):
        if np.abs(row).max() < 1e-30:
            assert np.abs(code).max() in (0, 127)
        else:
            assert row @ code / np.linalg.norm(row) / np.linalg.norm(code) > 0.999


def test_among_equals_the_newest_comes_first() -> None:
    codes = np.array([[9, 1, 0, 0]] * 3 + [[0, 0, 1, 9]] * 3, np.int8)
    assert all_ranked(rows_of(codes), np.array([1, 0, 0, 0], np.float32))[:3] == [2, 1, 0]


def test_what_is_older_than_asked_for_is_left_out() -> None:
    codes = np.array([[9, 1, 0, 0]] * 4, np.int8)
    assert all_ranked(rows_of(codes), np.array([1, 0, 0, 0], np.float32), since=2) == [3, 2]


def test_rows_are_added_once_and_removed() -> None:
    rows = rows_of(np.array([[9, 0, 0, 0]], np.int8))
    question = np.array([1, 0, 0, 0], np.float32)
    before = rows.snapshot()
    for _ in range(2):
        rows.add(np.array([0, 5, 6], np.int64), np.array([[9, 0, 0, 0]] * 3, np.int8))
    assert all_ranked(rows, question) == [6, 5, 0]
    rows.remove([5, 77])
    assert all_ranked(rows, question) == [6, 0]
    assert [list(some) for some in before.ranked(question, 0, 3)] == [[0]], "who reads is not disturbed"


class Places:
    """Vectors to be loaded, and what was."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.loaded: list[str] = []

    def load(self, place: str, most: int) -> tuple[Positions, Codes]:
        self.loaded.append(place)
        number = min(self.number, most)
        return np.arange(number, dtype=np.int64), np.ones((number, WIDTH), np.int8)


def test_channels_not_asked_for_longest_leave_first() -> None:
    places = Places(10)
    shelf = Shelf(places.load, WIDTH, most_bytes=2 * 10 * (WIDTH + 12))
    for place in ("#a", "#b", "#a", "#c", "#a", "#b"):
        shelf.get(place)
    assert places.loaded == ["#a", "#b", "#c", "#b"]


@pytest.mark.parametrize(("most_rows", "most_bytes"), [(100, 1 << 20), (1 << 20, 100 * (WIDTH + 12))])
def test_one_channel_takes_no_more_than_there_is(most_rows: int, most_bytes: int) -> None:
    places = Places(1_000)
    shelf = Shelf(places.load, WIDTH, most_bytes, most_rows)
    question = np.ones(WIDTH, np.float32)
    assert sum(map(len, shelf.get("#a").ranked(question, 0, 5))) == 100
    for number in range(10):
        shelf.add("#a", np.arange(1_000 + 20 * number, 1_020 + 20 * number), np.ones((20, WIDTH), np.int8))
    assert sum(map(len, shelf.get("#a").ranked(question, 0, 5))) <= 125


def test_what_nobody_asked_for_is_not_loaded() -> None:
    places = Places(5)
    Shelf(places.load, WIDTH).add("#a", np.array([1]), np.ones((1, WIDTH), np.int8))
    assert places.loaded == []


def test_a_busy_server_is_left_alone() -> None:
    runtime = Runtime()
    runtime.monotonic = iter([0.0, 1.0, 2.0]).__next__
    runtime.process_time = iter([0.0, 0.1, 1.2]).__next__
    runtime.thread_time = iter([0.0, 0.1, 0.2]).__next__
    pace = Pace(runtime=runtime)
    assert pace.rest() == pytest.approx(0.1), "half of the time"
    assert pace.rest() == pytest.approx(1.9), "a twentieth"
