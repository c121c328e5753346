"""Durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from culture.config.values import UNITS, Duration, seconds

DURATION: TypeAdapter[float] = TypeAdapter(Duration)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("30s", 30), ("30m", 1800), ("8h", 28800), ("1d", 86400), ("250ms", 0.25), ("90", 90), (90, 90), (0.5, 0.5)],
)
@pytest.mark.requirement("K17")
def test_a_duration_is_seconds_or_has_a_unit(written: object, meant: float) -> None:
    """K17"""
    assert DURATION.validate_python(written) == meant


@given(st.integers(1, 10**6), st.sampled_from(sorted(UNITS)))
@pytest.mark.requirement("K17")
def test_a_number_and_a_unit_multiply(number: int, unit: str) -> None:
    """K17"""
    assert seconds(f"{number}{unit}") == seconds(f" {number} {unit} ") == number * UNITS[unit]


@pytest.mark.parametrize("written", ["", "m", "30x", "-5s", "1h30m", "30 minutes", "٣s", True, None, [], "nan", "inf"])
def test_what_is_no_duration_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 30s, 30m or 8h"):
        seconds(written)


@pytest.mark.parametrize("written", [0, "0s", -1, float("inf"), float("nan")])
def test_a_duration_has_a_length(written: object) -> None:
    with pytest.raises(ValidationError):
        DURATION.validate_python(written)


@given(st.text())
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        assert isinstance(seconds(text), float)
    except ValueError:
        pass
