"""Reading what somebody says of themselves, which may be anything: nothing here fails."""

from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from culture.protocol.split import clip
from culture.protocol.text import Profile, clean, one_line

LONGEST = 2_000
_MOST = 1e15
_MOST_WORDS = 20
_MOST_LINES = 200


def text(value: Mapping[str, Any], name: str, longest: int = LONGEST) -> str:
    """Words in one line, which do nothing to a page or a terminal; empty where there are none."""
    said = value.get(name)
    if said is None or isinstance(said, dict | list):
        return ""
    return clip(one_line(str(said), Profile.WEB), longest)


def words(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The words of a list."""
    said = value.get(name)
    if not isinstance(said, list):
        return ()
    found = (text({name: each}, name, 100) for each in said[:_MOST_WORDS])
    return tuple(word for word in found if word)


def lines(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The lines of a list, with the spaces at their beginnings."""
    said = value.get(name)
    if not isinstance(said, list):
        return ()
    cleaned = (clean(str(each), Profile.WEB).replace("\n", " ") for each in said[:_MOST_LINES])
    return tuple(clip(line, LONGEST) for line in cleaned)


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
