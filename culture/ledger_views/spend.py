"""Cost and tokens of turns by day and by agent, from the ``spend`` facts of the ledger."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from culture.ledger_views import safe_values
from culture.ledger_views.ledger import LedgerFact
from culture.protocol.vocabulary import FactKind

_LONGEST_WORD = 40
_RETENTION = timedelta(days=31)
_CLOCK_SKEW = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TurnCost:
    """One finished turn of an agent, with its end, tokens, cost in dollars and outcome."""

    nick: str
    at: datetime
    tokens: int
    cost_usd: float
    outcome: str


@dataclass(frozen=True, slots=True)
class SpendTotal:
    """A sum over turns: their tokens, their cost in dollars and their number."""

    tokens: int = 0
    cost_usd: float = 0.0
    turns: int = 0

    def __add__(self, other: "SpendTotal") -> "SpendTotal":
        return SpendTotal(self.tokens + other.tokens, self.cost_usd + other.cost_usd, self.turns + other.turns)


Days = Mapping[date, Mapping[str, SpendTotal]]


def turns(facts: Iterable[LedgerFact]) -> list[TurnCost]:
    """Return the finished turns of all agents among the facts, oldest first."""
    costs = [_turn(fact) for fact in facts if fact.kind == FactKind.SPEND]
    return sorted(costs, key=lambda turn: (turn.at, turn.nick))


def by_day(turns: Iterable[TurnCost], zone: tzinfo | None = None) -> Days:
    """Return the totals of the turns that ended on each day: by day, then by the agent's nick.

    ``zone``: time zone of the days, None for the local one.
    """
    days: dict[date, dict[str, SpendTotal]] = defaultdict(dict)
    for turn in turns:
        day = days[turn.at.astimezone(zone).date()]
        day[turn.nick] = day.get(turn.nick, SpendTotal()) + _spent(turn)
    return {day: days[day] for day in sorted(days)}


def midnight(days_ago: int = 0) -> datetime:
    """Return the beginning (local time) of the day that was ``days_ago`` days before today.

    Budgets count days this way, also when clocks change.
    """
    today = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
    return (today - timedelta(days=days_ago)).astimezone()


def by_agent(turns: Iterable[TurnCost], since: datetime | None = None) -> dict[str, SpendTotal]:
    """Return the total of each agent's turns since a time (None: all), by nick.

    The most expensive agent comes first.
    """
    totals: dict[str, SpendTotal] = {}
    for turn in turns:
        if since is None or turn.at >= since:
            totals[turn.nick] = totals.get(turn.nick, SpendTotal()) + _spent(turn)
    return dict(sorted(totals.items(), key=lambda item: (-item[1].cost_usd, -item[1].tokens, item[0])))


def total(parts: Iterable[SpendTotal]) -> SpendTotal:
    """Return the sum of several totals."""
    return sum(parts, SpendTotal())


def _spent(turn: TurnCost) -> SpendTotal:
    return SpendTotal(turn.tokens, turn.cost_usd, 1)


def _turn(fact: LedgerFact) -> TurnCost:
    value = fact.value
    ended = safe_values.moment(value, "ended")
    # An agent that was offline publishes late; a time outside of the retention is ignored.
    is_likely = ended is not None and fact.at - _RETENTION <= ended <= fact.at + _CLOCK_SKEW
    return TurnCost(
        nick=fact.nick,
        at=ended if ended is not None and is_likely else fact.at,
        tokens=safe_values.count(value, "tokens"),
        cost_usd=safe_values.amount(value, "cost_usd") or 0.0,
        outcome=safe_values.text(value, "outcome", _LONGEST_WORD),
    )
