"""Reading what somebody says of themselves, which may be anything: nothing here fails."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from culture.protocol.split import clip

LONGEST = 2_000
_MOST = 1e15
_MOST_WORDS = 20
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What moves a cursor, breaks a line, turns the direction of what comes behind it, or is half a letter."""


def text(value: Mapping[str, Any], name: str, longest: int = LONGEST) -> str:
    """Words in one line, which do nothing to a page or a terminal; empty where there are none."""
    said = value.get(name)
    if said is None or isinstance(said, dict | list):
        return ""
    return clip(_UNFIT.sub(" ", str(said)).strip(), longest)


def words(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The words of a list."""
    said = value.get(name)
    if not isinstance(said, list):
        return ()
    found = (text({name: each}, name, 100) for each in said[:_MOST_WORDS])
    return tuple(word for word in found if word)


def amount(value: Mapping[str, Any], name: str) -> float | None:
    """A number that is not less than nothing; None where it is none."""
    said = value.get(name)
    if isinstance(said, bool):
        return None
    try:
        number = float(str(said))
    except ValueError:
        return None
    return min(max(number, 0.0), _MOST) if isfinite(number) else None


def count(value: Mapping[str, Any], name: str) -> int:
    """A whole number; 0 where it is none."""
    return int(amount(value, name) or 0)


def moment(value: Mapping[str, Any], name: str) -> datetime | None:
    """A time in UTC; None where it is none, or does not say of which zone."""
    try:
        at = datetime.fromisoformat(str(value.get(name)))
        return at.astimezone(UTC) if at.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
