"""Reads and prints sizes, ages and dates as people write them."""

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


def parser(read: Callable[[str], Result]) -> Callable[[str], Result]:
    """Return a parser for the value of an option, which calls ``read``.

    A ValueError of ``read`` becomes a usage error of the command.
    """

    def parse(text: str) -> Result:
        try:
            return read(text)
        except ValueError as wrong:
            raise typer.BadParameter(str(wrong)) from None

    return parse


def format_size(size: int) -> str:
    """Format a number of bytes with a decimal unit, such as ``1.5 MB``."""
    amount = float(size)
    for unit in _UNITS:
        if amount < _THOUSAND or unit == _UNITS[-1]:
            break
        amount /= _THOUSAND
    return f"{amount:.0f} {unit}" if unit == _UNITS[0] else f"{amount:.1f} {unit}"


def counted(number: int, what: str = "entry", many: str = "entries") -> str:
    """Format a number with its noun: ``1 entry``, ``2 entries``.

    ``what``: the noun's singular. ``many``: its plural.
    """
    return f"{number} {what if number == 1 else many}"


def parse_size(text: str) -> int:
    """Parse a size such as ``100MB`` into bytes; raise ValueError if the text is not a size."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 500kB, 100MB or 2GB")
    return int(float(match[1]) * _THOUSAND ** _POWERS[match[2].lower()])


def parse_age(text: str) -> float:
    """Parse an age such as ``90d`` into seconds; raise ValueError if the text is not an age."""
    try:
        value = seconds(text)
    except ValueError:
        value = None
    if not isinstance(value, float) or value <= 0:
        raise ValueError(f"{text!r} is not an age such as 12h or 90d")
    return value


def parse_time(text: str) -> int:
    """Parse a date or time (UTC) into microseconds since 1970.

    ValueError is raised if the text is not a time.
    """
    for form in _FORMS:
        try:
            date = dt.datetime.strptime(text.strip().removesuffix("Z"), form)
        except ValueError:
            continue
        return int(date.replace(tzinfo=dt.UTC).timestamp()) * MICROSECONDS
    raise ValueError(f"{text!r} is not a date such as 2026-03-19, or 2026-03-19T10:00 (UTC)")


def format_time(at: int) -> str:
    """Format microseconds since 1970 as ``2026-03-19 10:00:00`` (UTC)."""
    return _as_date(at).strftime("%Y-%m-%d %H:%M:%S")


def format_exact_time(at: int) -> str:
    """Format microseconds since 1970 as ISO 8601 with microseconds, for programs."""
    return _as_date(at).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _as_date(at: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=at)
