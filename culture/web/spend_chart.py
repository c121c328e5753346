"""What was spent day by day as a drawing: a bar for each day, a piece of it for each agent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import floor, log10

from culture.ledger_views.spend import Days, SpendTotal
from culture.web.templates import limit, short

WIDTH, HEIGHT = 720, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 12, 14, 30
COLOURS = 8
"""The last one is for all the others together."""
_OTHERS = "others"
_LINES = 4
_NOTHING = 1e-9
"""Of dollars or tokens: less is not told apart."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An agent's part of a day."""

    x: float
    y: float
    width: float
    height: float
    colour: int
    text: str


@dataclass(frozen=True, slots=True)
class AxisLabel:
    """A word at an axis."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Everything to draw."""

    pieces: tuple[Piece, ...]
    lines: tuple[AxisLabel, ...]
    days: tuple[AxisLabel, ...]
    key: tuple[tuple[str, int], ...]
    """The agents and their colours."""
    left: int = _LEFT
    width: int = WIDTH
    height: int = HEIGHT


def chart(spent: Days, last: date, length: int, in_tokens: bool = False) -> Chart:
    """The days up to the last one; in dollars, or in tokens."""
    days = [last - timedelta(days=ago) for ago in reversed(range(length))]
    parts = [spent.get(day, {}) for day in days]
    colours = _colours(parts, in_tokens)
    top = _round_up(max((sum(_amount(each, in_tokens) for each in day.values()) for day in parts), default=0.0))
    floor_y, step = HEIGHT - _BOTTOM, (WIDTH - _LEFT - _RIGHT) / length
    scale = (floor_y - _TOP) / top
    pieces: list[Piece] = []
    for number, (day, shares) in enumerate(zip(days, parts, strict=True)):
        y = float(floor_y)
        for name, amount in _grouped(shares, colours, in_tokens):
            height = amount * scale
            y -= height
            x, width = _LEFT + step * number + step * 0.14, step * 0.72
            text = f"{day:%-d %b}, {name}: {_shown(amount, in_tokens)}"
            pieces.append(Piece(round(x, 2), round(y, 2), round(width, 2), round(height, 2), colours[name], text))
    lines = tuple(
        AxisLabel(_LEFT, round(floor_y - top * part / _LINES * scale, 2), _shown(top * part / _LINES, in_tokens))
        for part in range(_LINES + 1)
    )
    every = max(1, round(length / 8))
    marks = tuple(
        AxisLabel(round(_LEFT + step * (number + 0.5), 2), HEIGHT - 8, f"{day:%-d %b}")
        for number, day in enumerate(days)
        if (length - 1 - number) % every == 0
    )
    return Chart(tuple(pieces), lines, marks, tuple(colours.items()))


def _amount(spent: SpendTotal, in_tokens: bool) -> float:
    return float(spent.tokens) if in_tokens else spent.cost_usd


def _shown(amount: float, in_tokens: bool) -> str:
    return short(amount) if in_tokens else limit(amount)


def _colours(parts: Sequence[Mapping[str, SpendTotal]], in_tokens: bool) -> dict[str, int]:
    """Whoever used most has a colour of their own."""
    sums: dict[str, float] = {}
    for day in parts:
        for nick, spent in day.items():
            sums[nick] = sums.get(nick, 0.0) + _amount(spent, in_tokens)
    order = sorted((nick for nick in sums if sums[nick] > 0), key=lambda nick: (-sums[nick], nick))
    own = order if len(order) <= COLOURS else order[: COLOURS - 1]
    found = {nick: number for number, nick in enumerate(own)}
    return found if len(own) == len(order) else {**found, _OTHERS: COLOURS - 1}


def _grouped(shares: Mapping[str, SpendTotal], colours: dict[str, int], in_tokens: bool) -> list[tuple[str, float]]:
    found: dict[str, float] = {}
    for nick, spent in shares.items():
        name = nick if nick in colours else _OTHERS
        found[name] = found.get(name, 0.0) + _amount(spent, in_tokens)
    return [(name, found[name]) for name in colours if found.get(name)]


def _round_up(amount: float) -> float:
    """The next round number: 1, 2, 4, 5 or 10 times a power of ten."""
    if amount <= _NOTHING:
        return 1.0 if amount <= 0 else _NOTHING
    power = 10.0 ** floor(log10(amount))
    return next(power * step for step in (1, 2, 4, 5, 10) if amount <= power * step * 1.0000001)
