"""Which messages are known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.federation.seen import Marks, Seen

NUMBERS = st.one_of(st.integers(0, 20_000), st.integers(0, 10**18 - 1))


@pytest.mark.requirement("E07")
@given(st.integers(0, 10_000), st.lists(NUMBERS), st.lists(NUMBERS))
def test_exactly_what_came_and_what_is_below_the_floor_is_known(floor: int, came: list[int], others: list[int]) -> None:
    marks = Marks(floor)
    for seq in came:
        marks.add(seq)
    for seq in [*came, *others]:
        assert (seq in marks) == (seq in came or seq < floor)


def test_what_is_much_older_than_the_first_that_came_is_still_new() -> None:
    seen = Seen()
    seen.add("thor", "e1", 5_000_000)
    assert not seen.knows("thor", "e1", 3)
    assert not seen.knows("thor", "e2", 5_000_000)
    assert not seen.knows("odin", "e1", 5_000_000)
    assert seen.knows("thor", "e1", 5_000_000)
