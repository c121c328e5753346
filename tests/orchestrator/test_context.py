"""How full a context is: the backend's word where there is one, else what was read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.config.team import DEFAULT_ROLES, HAIKU, OPUS, SONNET
from culture.orchestrator.members.members import ContextTracker, Fill, ModelTier


@pytest.mark.requirement("O14")
@pytest.mark.parametrize(
    ("model", "window"),
    [
        (OPUS, 1_000_000),
        ("anthropic/claude-opus-4-6", 1_000_000),
        (SONNET, 200_000),
        (f"{SONNET}[1m]", 1_000_000),
        (HAIKU, 200_000),
        ("gpt-5", 200_000),
        (None, 200_000),
    ],
)
def test_the_window_of_a_model_is_known_by_its_name(model: str | None, window: int) -> None:
    assert ModelTier.context_window(model) == window


def test_every_role_has_a_model_whose_window_is_known() -> None:
    assert {ModelTier.of(role.model) for role in DEFAULT_ROLES.values()} == {
        ModelTier.OPUS,
        ModelTier.SONNET,
        ModelTier.HAIKU,
    }


@pytest.mark.requirement("O14")
def test_what_was_read_adds_up_against_the_window() -> None:
    tracker = ContextTracker(window_size=ModelTier.context_window(SONNET), threshold_pct=90)
    seen = []
    for _ in range(4):
        tracker.add(45_000)
        seen.append((tracker.pct, tracker.fill))
    assert seen == [(22.5, Fill.ROOM), (45.0, Fill.ROOM), (67.5, Fill.ROOM), (90.0, Fill.SHIFT)]


def test_at_eighty_it_is_warned_and_at_the_threshold_it_hands_over() -> None:
    tracker = ContextTracker(100, 90)
    assert [_after(tracker, pct) for pct in (79.9, 80, 89.9, 90)] == [Fill.ROOM, Fill.WARN, Fill.WARN, Fill.SHIFT]
    assert _after(ContextTracker(100, 50), 50) is Fill.SHIFT
    assert _after(ContextTracker(100, 50, 30), 30) is Fill.WARN


def _after(tracker: ContextTracker, pct: float) -> Fill:
    tracker.add(0, pct)
    return tracker.fill


@given(st.lists(st.tuples(st.integers(0, 10**6), st.none() | st.floats(0, 100))), st.integers(1, 100))
def test_a_figure_of_the_backend_goes_above_ours(turns: list[tuple[int, float | None]], threshold: int) -> None:
    tracker = ContextTracker(200_000, threshold)
    for tokens, pct in turns:
        tracker.add(tokens, pct)
    told = [pct for _, pct in turns if pct is not None]
    expected = told[-1] if told else sum(tokens for tokens, _ in turns) / 2000
    assert tracker.pct == pytest.approx(expected)
    assert (tracker.fill is Fill.SHIFT) == (tracker.pct >= threshold)
    tracker.reset()
    assert tracker.pct == 0
