"""Read typed values out of ledger facts.

Facts are published by any client and may contain anything. Nothing here raises: a value of the wrong type,
out of range or too long becomes the default, or is cut.
"""

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
    """A field as one cleaned line of text, cut to ``longest`` characters.

    Empty if the field is no text.
    """
    raw = value.get(name)
    if raw is None or isinstance(raw, dict | list):
        return ""
    return clip(one_line(str(raw), Profile.WEB), longest)


def words(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A field that is a list, as at most 20 cleaned one-line texts."""
    raw = value.get(name)
    if not isinstance(raw, list):
        return ()
    texts = (text({name: each}, name, 100) for each in raw[:_MOST_WORDS])
    return tuple(word for word in texts if word)


def lines(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A field that is a list of lines, cleaned, with their indentation; at most 200."""
    raw = value.get(name)
    if not isinstance(raw, list):
        return ()
    cleaned = (clean(str(each), Profile.WEB).replace("\n", " ") for each in raw[:_MOST_LINES])
    return tuple(clip(line, LONGEST) for line in cleaned)


def amount(value: Mapping[str, Any], name: str) -> float | None:
    """A field as a number from 0 to 10^15; None if it is not a finite number."""
    raw = value.get(name)
    if isinstance(raw, bool):
        return None
    try:
        number = float(str(raw))
    except ValueError:
        return None
    return min(max(number, 0.0), _MOST) if isfinite(number) else None


def count(value: Mapping[str, Any], name: str) -> int:
    """A field as a whole number; 0 if the field is no number."""
    return int(amount(value, name) or 0)


def moment(value: Mapping[str, Any], name: str) -> datetime | None:
    """A field as a time in UTC; None if it is not ISO 8601 with a zone."""
    try:
        at = datetime.fromisoformat(str(value.get(name)))
        return at.astimezone(UTC) if at.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
