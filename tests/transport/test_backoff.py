"""How long to wait before the next try."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.transport.backoff import Backoff, pause

chances = st.floats(0, 1)


@pytest.mark.requirement("F21")
def test_the_pauses_are_those_of_the_founding_text() -> None:
    assert [pause(attempt, 0.0) for attempt in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]


@pytest.mark.requirement("F21")
@pytest.mark.fault("E22")
@given(attempt=st.integers(0, 10**9), chance=chances)
def test_no_pause_is_short_and_none_is_longer_than_a_minute(attempt: int, chance: float) -> None:
    assert 0.75 <= pause(attempt, chance) <= 60
    assert pause(attempt, chance) <= pause(attempt, 0.0)


@given(st.integers(0, 100), chances, chances)
def test_later_tries_never_come_sooner(attempt: int, one: float, other: float) -> None:
    """Chance takes away less than the next step adds, up to the longest."""
    assert pause(attempt + 1, one) >= min(pause(attempt, other), 45)


@given(st.lists(chances, min_size=1, max_size=20), st.floats(0, 29))
def test_a_connection_that_falls_at_once_is_as_good_as_none(chance: list[float], lasted: float) -> None:
    backoff = Backoff()
    for each in chance:
        backoff.next(each)
        backoff.stood(lasted)
    assert backoff.attempt == len(chance)
    backoff.stood(30)
    assert backoff.attempt == 0
