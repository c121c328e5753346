"""An agent as the ledger has it."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from culture.ledger_views import safe_values
from culture.ledger_views.ledger import LedgerFact
from culture.ledger_views.states import shown_state
from culture.protocol.names import fold
from culture.protocol.vocabulary import AgentState, FactKind

STOPPED = "stopped"
_UNKNOWN = "?"
_LONGEST_WORD = 40
_MOST_PCT = 999.0
_MOST_SENDERS = 8


@dataclass(frozen=True, slots=True)
class HeldMessages:
    """Messages of one sender that an agent is not given before a person says so."""

    nick: str
    count: int
    why: str
    """``unvouched``, ``people`` or ``loop``."""


@dataclass(frozen=True, slots=True)
class AgentView:
    """What an agent does and has used today, as it said last."""

    nick: str
    server: str
    backend: str
    state: str
    told: datetime
    """When it said so."""
    task: str = ""
    since: datetime | None = None
    tokens: int = 0
    cost_usd: float = 0.0
    budget_tokens: int | None = None
    """What it may use in a day; None where there is no limit, or it does not say."""
    budget_usd: float | None = None
    limit_pct: float | None = None
    """How much of its nearest limit is gone, of whatever kind, as it says itself."""
    is_subscription: bool = False
    """Its dollars are what its tokens would cost."""
    context_pct: float | None = None
    unread: int = 0
    stale: int = 0
    held: int = 0
    """So many messages wait for a person's word."""
    held_by: tuple[HeldMessages, ...] = ()
    stood_down: bool = False
    """Only people wake it."""
    questions: int = 0
    """So many wait for an answer."""
    is_here: bool = True
    """It is on the mesh with a client."""

    @property
    def runs(self) -> bool:
        """Whether there is somebody to talk to."""
        return self.is_here and self.state != STOPPED

    @property
    def shown_state(self) -> str:
        """Its state as people see it."""
        return shown_state(self.state, stood_down=self.stood_down, held=self.held)

    @property
    def needs_somebody(self) -> bool:
        """Whether a person has to look after it."""
        return self.state in (AgentState.ASKING, AgentState.PARKED, AgentState.CRASHED) or self.questions > 0

    @property
    def budget_pct(self) -> float | None:
        """How much of the budget is used, of the limit that is nearest; None without one."""
        limits = ((self.tokens, self.budget_tokens), (self.cost_usd, self.budget_usd), (self.limit_pct, 100))
        shares = [100 * used / limit for used, limit in limits if limit and used is not None]
        return min(max(shares), _MOST_PCT) if shares else None

    def as_data(self) -> dict[str, Any]:
        """The agent as ``culture status`` has it."""
        return {
            "nick": self.nick,
            "server": self.server,
            "backend": self.backend,
            "state": self.state,
            "task": self.task or None,
            "since": self.since.isoformat() if self.since else None,
            "tokens_today": self.tokens,
            "cost_usd_today": self.cost_usd,
            "budget_pct": self.budget_pct,
            "context_pct": self.context_pct,
            "unread": self.unread,
            "stale": self.stale,
            "held": self.held,
            "stood_down": self.stood_down,
            "held_by": [{"nick": each.nick, "count": each.count, "why": each.why} for each in self.held_by],
            "last_message": None,
            "told": self.told.isoformat(),
            "connected": self.is_here,
            "questions": self.questions,
            "quiet": False,
        }


def agents(facts: Iterable[LedgerFact], here: Collection[str] | None = None) -> list[AgentView]:
    """The agents by nick; ``here`` are the folded nicks of those who are on the mesh, None when nobody knows."""
    kept = list(facts)
    asked = Counter(fold(fact.nick) for fact in kept if fact.kind == FactKind.QUESTION and fact.value.get("open"))
    states = {fold(fact.nick): fact for fact in kept if fact.kind == FactKind.STATE}
    found = [_agent(fact, asked[nick], here is None or nick in here) for nick, fact in states.items()]
    return sorted(found, key=lambda agent: fold(agent.nick))


def _agent(fact: LedgerFact, questions: int, is_here: bool) -> AgentView:
    value = fact.value
    state = safe_values.text(value, "state", _LONGEST_WORD) or _UNKNOWN
    tokens = safe_values.amount(value, "budget-tokens")
    return AgentView(
        nick=fact.nick,
        server=fact.server,
        backend=safe_values.text(value, "backend", _LONGEST_WORD) or _UNKNOWN,
        state=state,
        told=fact.at,
        task=safe_values.text(value, "task"),
        since=safe_values.moment(value, "since") if state != STOPPED else None,
        tokens=safe_values.count(value, "tokens"),
        cost_usd=safe_values.amount(value, "cost-usd") or 0.0,
        budget_tokens=None if tokens is None else int(tokens),
        budget_usd=safe_values.amount(value, "budget-usd"),
        limit_pct=safe_values.amount(value, "budget-pct"),
        is_subscription=safe_values.text(value, "billing") == "subscription",
        context_pct=safe_values.amount(value, "context-pct"),
        unread=safe_values.count(value, "unread"),
        stale=safe_values.count(value, "stale"),
        held=safe_values.count(value, "held"),
        stood_down=safe_values.text(value, "stood-down") == "yes",
        held_by=tuple(_held(value.get("held-by"))),
        questions=questions,
        is_here=is_here,
    )


def _held(value: object) -> Iterator[HeldMessages]:
    """Whose messages are held; what is no list of them is nothing."""
    for each in value[:_MOST_SENDERS] if isinstance(value, list) else ():
        nick = safe_values.text(each, "nick", _LONGEST_WORD) if isinstance(each, Mapping) else ""
        if nick:
            yield HeldMessages(nick, safe_values.count(each, "count"), safe_values.text(each, "why", _LONGEST_WORD))
