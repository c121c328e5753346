"""Layout of the spend chart (SVG): one stacked bar per day, one segment per agent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import floor, log10

from culture.ledger_views.spend import Days, SpendTotal
from culture.web.templates import limit, short

WIDTH, HEIGHT = 720, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 12, 14, 30
COLOURS = 8
"""Number of colours; with more agents, the last colour is for all others together."""
_OTHERS = "others"
_LINES = 4
_MIN_TOP = 1e-9
"""Smallest upper end of the axis, in dollars or tokens."""


@dataclass(frozen=True, slots=True)
class BarSegment:
    """One agent's part of a day's bar in the spend chart: rectangle in SVG units, colour, text."""

    x: float
    y: float
    width: float
    height: float
    colour: int
    text: str


@dataclass(frozen=True, slots=True)
class AxisLabel:
    """A text at an axis of the spend chart, with its position in SVG units."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The spend chart: all bar segments and labels with their positions."""

    segments: tuple[BarSegment, ...]
    lines: tuple[AxisLabel, ...]
    days: tuple[AxisLabel, ...]
    key: tuple[tuple[str, int], ...]
    """Agents and their colour numbers."""
    left: int = _LEFT
    width: int = WIDTH
    height: int = HEIGHT


def draw_chart(spent: Days, last: date, length: int, in_tokens: bool = False) -> Chart:
    """Return the spend chart of the ``length`` days up to and including ``last``.

    ``spent``: totals by day and agent. ``in_tokens``: show tokens instead of dollars.
    """
    days = [last - timedelta(days=ago) for ago in reversed(range(length))]
    parts = [spent.get(day, {}) for day in days]
    colours = _colours(parts, in_tokens)
    top = _round_up(max((sum(_amount(each, in_tokens) for each in day.values()) for day in parts), default=0.0))
    floor_y, step = HEIGHT - _BOTTOM, (WIDTH - _LEFT - _RIGHT) / length
    scale = (floor_y - _TOP) / top
    segments: list[BarSegment] = []
    for number, (day, shares) in enumerate(zip(days, parts, strict=True)):
        y = float(floor_y)
        for name, amount in _grouped(shares, colours, in_tokens):
            height = amount * scale
            y -= height
            x, width = _LEFT + step * number + step * 0.14, step * 0.72
            text = f"{day:%-d %b}, {name}: {_label(amount, in_tokens)}"
            segments.append(
                BarSegment(round(x, 2), round(y, 2), round(width, 2), round(height, 2), colours[name], text)
            )
    lines = tuple(
        AxisLabel(_LEFT, round(floor_y - top * part / _LINES * scale, 2), _label(top * part / _LINES, in_tokens))
        for part in range(_LINES + 1)
    )
    every = max(1, round(length / 8))
    marks = tuple(
        AxisLabel(round(_LEFT + step * (number + 0.5), 2), HEIGHT - 8, f"{day:%-d %b}")
        for number, day in enumerate(days)
        if (length - 1 - number) % every == 0
    )
    return Chart(tuple(segments), lines, marks, tuple(colours.items()))


def _amount(spent: SpendTotal, in_tokens: bool) -> float:
    return float(spent.tokens) if in_tokens else spent.cost_usd


def _label(amount: float, in_tokens: bool) -> str:
    return short(amount) if in_tokens else limit(amount)


def _colours(parts: Sequence[Mapping[str, SpendTotal]], in_tokens: bool) -> dict[str, int]:
    """Return the number of each agent's colour; too many agents share the colour ``others``.

    ``parts``: totals by agent for each day. ``in_tokens``: compare tokens, not dollars. Those who spent most have a
    colour of their own.
    """
    sums: dict[str, float] = {}
    for day in parts:
        for nick, spent in day.items():
            sums[nick] = sums.get(nick, 0.0) + _amount(spent, in_tokens)
    order = sorted((nick for nick in sums if sums[nick] > 0), key=lambda nick: (-sums[nick], nick))
    own = order if len(order) <= COLOURS else order[: COLOURS - 1]
    colours = {nick: number for number, nick in enumerate(own)}
    return colours if len(own) == len(order) else {**colours, _OTHERS: COLOURS - 1}


def _grouped(shares: Mapping[str, SpendTotal], colours: dict[str, int], in_tokens: bool) -> list[tuple[str, float]]:
    amounts: dict[str, float] = {}
    for nick, spent in shares.items():
        name = nick if nick in colours else _OTHERS
        amounts[name] = amounts.get(name, 0.0) + _amount(spent, in_tokens)
    return [(name, amounts[name]) for name in colours if amounts.get(name)]


def _round_up(amount: float) -> float:
    """Return the next round number from ``amount`` on: 1, 2, 4, 5 or 10 times a power of ten."""
    if amount <= _MIN_TOP:
        return 1.0 if amount <= 0 else _MIN_TOP
    power = 10.0 ** floor(log10(amount))
    return next(power * step for step in (1, 2, 4, 5, 10) if amount <= power * step * 1.0000001)
