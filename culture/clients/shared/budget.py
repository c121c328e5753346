"""No turn without a budget: what an agent may spend, when it is warned, and when it has to wait."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from culture.config.agents import BudgetConfig

WARNED_AT = 0.8


@dataclass(frozen=True, slots=True)
class Spent:
    """What was used."""

    tokens: int = 0
    cost_usd: float = 0.0
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Quota:
    """A window of a subscription: the provider gives so much within it, and anew when it is over."""

    name: str
    used: float
    """The share of it that is gone, for all who use the same login."""
    resets: float
    """When it is over (seconds since 1970)."""

    @property
    def title(self) -> str:
        """What people call it."""
        return f"{self.name.replace('_', ' ')} window"


def add(one: Spent, other: Spent) -> Spent:
    """Both in one."""
    return Spent(one.tokens + other.tokens, one.cost_usd + other.cost_usd, one.turns + other.turns)


class Level(Enum):
    """How much of a budget is gone."""

    FINE = "fine"
    LOW = "low"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an agent stands: the limit that is nearest, in words, and whether it comes back by itself."""

    level: Level
    limit: str = ""
    resets: bool = True
    until: float | None = None
    """When the window of a subscription is over; None where it is the day that ends."""
    share: float | None = None
    """How much of that limit is gone; None without any limit."""


def standing(budget: BudgetConfig, today: Spent, ever: Spent, quotas: Iterable[Quota] | None = None) -> Standing:
    """The tightest of the limits, those of the day and those for good.

    With the ``quotas`` of a subscription, however few are known, these count and money does not: it is notional.
    """
    is_metered = quotas is None
    limits = (
        (today.tokens, budget.tokens_per_day, "tokens a day", True, None),
        (today.cost_usd, budget.usd_per_day if is_metered else None, "dollars a day", True, None),
        (today.turns, budget.turns_per_day, "turns a day", True, None),
        (ever.tokens, budget.tokens_total, "tokens in all", False, None),
        (ever.cost_usd, budget.usd_total if is_metered else None, "dollars in all", False, None),
        *(
            (round(100 * each.used, 2), budget.window_pct, f"percent of the {each.title}", True, each.resets)
            for each in quotas or ()
        ),
    )
    worst = Standing(Level.FINE, share=None if all(limit is None for _, limit, *_ in limits) else 0.0)
    for used, limit, unit, resets, until in limits:
        if limit is not None and used / limit > (worst.share or 0.0):
            share = used / limit
            level = Level.GONE if share >= 1 else Level.LOW if share >= WARNED_AT else Level.FINE
            worst = Standing(level, f"{used:,.2f} of {limit:,} {unit}".replace(".00 of", " of"), resets, until, share)
    return worst


def midnight(now: datetime) -> datetime:
    """When the day began."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def reset(now: datetime) -> datetime:
    """When the next day begins."""
    return midnight(now + timedelta(days=1))
