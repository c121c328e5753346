"""Sizes, durations and dates as people write and read them."""

import datetime as dt
import re
from collections.abc import Callable
from typing import TypeVar

import typer

from culture.config.values import seconds
from culture.server.core.ids import MICROSECONDS

_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_THOUSAND = 1000
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_FORMS = ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S")


Result = TypeVar("Result")


def option(read: Callable[[str], Result]) -> Callable[[str], Result]:
    """What reads an option's value: a wrong one is told as the command line tells others."""

    def parse(text: str) -> Result:
        try:
            return read(text)
        except ValueError as wrong:
            raise typer.BadParameter(str(wrong)) from None

    return parse


def shown_size(size: int) -> str:
    """``1.5 MB``."""
    amount = float(size)
    for unit in _UNITS:
        if amount < _THOUSAND or unit == _UNITS[-1]:
            break
        amount /= _THOUSAND
    return f"{amount:.0f} {unit}" if unit == _UNITS[0] else f"{amount:.1f} {unit}"


def counted(number: int, what: str = "entry", many: str = "entries") -> str:
    """``1 entry``, ``2 entries``."""
    return f"{number} {what if number == 1 else many}"


def size(text: str) -> int:
    """Read ``100MB``; ValueError says what was expected."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a size such as 500kB, 100MB or 2GB")
    return int(float(found[1]) * _THOUSAND ** _POWERS[found[2].lower()])


def duration(text: str) -> float:
    """Read ``90d`` as seconds."""
    try:
        value = seconds(text)
    except ValueError:
        value = None
    if not isinstance(value, float) or value <= 0:
        raise ValueError(f"{text!r} is not an age such as 12h or 90d")
    return value


def moment(text: str) -> int:
    """Read a date or a time in UTC as microseconds since 1970."""
    for form in _FORMS:
        try:
            found = dt.datetime.strptime(text.strip().removesuffix("Z"), form)
        except ValueError:
            continue
        return int(found.replace(tzinfo=dt.UTC).timestamp()) * MICROSECONDS
    raise ValueError(f"{text!r} is not a date such as 2026-03-19, or 2026-03-19T10:00 (UTC)")


def shown_moment(at: int) -> str:
    """``2026-03-19 10:00:00``, in UTC."""
    return _as_date(at).strftime("%Y-%m-%d %H:%M:%S")


def exact_moment(at: int) -> str:
    """The same to the microsecond, as programs read it."""
    return _as_date(at).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _as_date(at: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=at)
