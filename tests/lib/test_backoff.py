"""Exponential backoff: how long to wait before the next try."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.lib.backoff import Backoff, delay

chances = st.floats(0, 1)


def of_the_transport(*chance: float) -> Backoff:
    """The backoff of an IRC connection, with these random numbers."""
    numbers = iter(chance)
    return Backoff(1.0, 60.0, random=lambda: next(numbers))


@pytest.mark.requirement("F21")
def test_the_pauses_are_those_of_the_founding_text() -> None:
    backoff = of_the_transport(*[0.0] * 8)
    assert [backoff.next() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert [delay(attempt, 1.0, 60.0) for attempt in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]


@pytest.mark.requirement("F21")
@pytest.mark.fault("E22")
@given(attempt=st.integers(0, 10**9), chance=chances)
def test_no_pause_is_short_and_none_is_longer_than_a_minute(attempt: int, chance: float) -> None:
    seconds = delay(attempt, 1.0, 60.0, 0.25, chance)
    assert 0.75 <= seconds <= 60
    assert seconds <= delay(attempt, 1.0, 60.0)


@given(st.lists(chances, min_size=1, max_size=40))
def test_later_pauses_are_not_shorter_up_to_the_longest(chance: list[float]) -> None:
    """Jitter takes away less than the next step adds."""
    backoff = of_the_transport(*chance)
    pauses = [backoff.next() for _ in chance]
    for earlier, later in pairwise(pauses):
        assert later >= min(earlier, 45)


@given(st.floats(0.01, 10), st.floats(0.01, 100), st.floats(0, 1), st.lists(chances, max_size=30))
def test_pause_is_what_delay_says(first: float, longest: float, jitter: float, chance: list[float]) -> None:
    numbers = iter(chance)
    backoff = Backoff(first, longest, jitter=jitter, random=lambda: next(numbers))
    for attempt, each in enumerate(chance):
        assert backoff.next() == pytest.approx(delay(attempt, first, longest, jitter, each))


@given(st.lists(chances, min_size=1, max_size=20), st.floats(0, 29))
def test_connection_that_falls_at_once_does_not_reset(chance: list[float], lasted: float) -> None:
    backoff = of_the_transport(*chance)
    for _ in chance:
        backoff.next()
        backoff.lasted(lasted)
    assert backoff.pause == delay(len(chance), 1.0, 60.0)
    backoff.lasted(30)
    assert backoff.pause == 1.0


def test_floor_holds_until_the_reset() -> None:
    backoff = of_the_transport(0.0, 0.0, 0.0, 0.0)
    backoff.at_least(300.0)
    assert [backoff.next(), backoff.next()] == [300.0, 300.0]
    backoff.reset()
    assert [backoff.next(), backoff.next()] == [1.0, 2.0]
