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
    """Return a field of a fact as one line without control characters; "" if it is no text.

    ``value``: the fact's value. ``name``: the field. ``longest``: characters after which it is cut.
    """
    raw = value.get(name)
    if raw is None or isinstance(raw, dict | list):
        return ""
    return clip(one_line(str(raw), Profile.WEB), longest)


def words(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the texts in a field of a fact that is a list, without control characters.

    At most 20 texts of one line each; empty ones are left out. ``value``: the fact's value. ``name``: the field. The
    result is empty if the field is no list.
    """
    raw = value.get(name)
    if not isinstance(raw, list):
        return ()
    texts = (text({name: each}, name, 100) for each in raw[:_MOST_WORDS])
    return tuple(word for word in texts if word)


def lines(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the lines in a field of a fact that is a list, without control characters.

    At most 200 lines, with their indentation. ``value``: the fact's value. ``name``: the field. The result is empty
    if the field is no list.
    """
    raw = value.get(name)
    if not isinstance(raw, list):
        return ()
    cleaned = (clean(str(each), Profile.WEB).replace("\n", " ") for each in raw[:_MOST_LINES])
    return tuple(clip(line, LONGEST) for line in cleaned)


def amount(value: Mapping[str, Any], name: str) -> float | None:
    """Return a field of a fact as a number, limited to 0 to 10^15; None if it is not finite.

    ``value``: the fact's value. ``name``: the field. None is also returned for a field that is no number.
    """
    raw = value.get(name)
    if isinstance(raw, bool):
        return None
    try:
        number = float(str(raw))
    except ValueError:
        return None
    return min(max(number, 0.0), _MOST) if isfinite(number) else None


def count(value: Mapping[str, Any], name: str) -> int:
    """Return a field of a fact as a whole number, at least 0; 0 if it is no number.

    ``value``: the fact's value. ``name``: the field.
    """
    return int(amount(value, name) or 0)


def moment(value: Mapping[str, Any], name: str) -> datetime | None:
    """Return a field of a fact as a time in UTC; None if it is not ISO 8601 with a time zone.

    ``value``: the fact's value. ``name``: the field.
    """
    try:
        at = datetime.fromisoformat(str(value.get(name)))
        return at.astimezone(UTC) if at.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
