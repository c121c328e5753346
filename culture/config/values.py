"""Kinds of value that configuration files share: durations, counts, secrets, channel names."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")


@dataclass(frozen=True)
class Hidden:
    """Marks a value that is never printed."""


def seconds(value: object) -> object:
    """Read ``30s``, ``30m``, ``8h`` or a plain number as seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError("expected a duration such as 30s, 30m or 8h, or a number of seconds")
    number, unit = found.groups()
    return float(number) * UNITS[unit or "s"]


def as_path(value: object) -> object:
    """Read text as a path, with ``~`` opened."""
    return Path(value).expanduser() if isinstance(value, str | Path) else value


def channel_name(name: str) -> str:
    """Refuse what is no channel."""
    if not name.startswith("#") or len(name) < 2 or re.search(r"[\s,\x00-\x20\x7f]", name):
        raise ValueError(f"{name!r} is not a channel: it begins with # and has no spaces or commas")
    return name


Count = Annotated[int, Field(ge=1)]
Duration = Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(seconds)]
Secret = Annotated[str, Hidden()]
