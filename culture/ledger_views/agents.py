"""Agents: state, task, budget and held messages, from the ``state`` facts of the ledger."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from culture.ledger_views import safe_values
from culture.ledger_views.ledger import LedgerFact
from culture.ledger_views.states import display_state
from culture.protocol.names import fold
from culture.protocol.vocabulary import AgentState, FactKind

STOPPED = "stopped"
_UNKNOWN = "?"
_LONGEST_WORD = 40
_MOST_PCT = 999.0
_MOST_SENDERS = 8


@dataclass(frozen=True, slots=True)
class HeldMessages:
    """The held messages of one sender for an agent: their number, and why they are held."""

    nick: str
    count: int
    reason: str
    """``unvouched``, ``people`` or ``loop``; anything else counts as ``loop``."""


@dataclass(frozen=True, slots=True)
class AgentView:
    """State and today's usage of one agent, from the ``state`` fact that it published last."""

    nick: str
    server: str
    backend: str
    state: str
    updated: datetime
    """When the agent published this."""
    task: str = ""
    since: datetime | None = None
    tokens: int = 0
    cost_usd: float = 0.0
    budget_tokens: int | None = None
    """Token limit per day; None without a limit, or if the agent does not publish it."""
    budget_usd: float | None = None
    limit_pct: float | None = None
    """Percentage used of the limit that is nearest, of any kind, as the agent computes it."""
    is_subscription: bool = False
    """The agent runs on a subscription: its dollars are an estimate from its tokens."""
    context_pct: float | None = None
    unread: int = 0
    stale: int = 0
    held: int = 0
    """Number of messages that wait for release by a person."""
    held_by: tuple[HeldMessages, ...] = ()
    stood_down: bool = False
    """Only people can wake it."""
    questions: int = 0
    """Number of open questions."""
    is_online: bool = True
    """Whether the agent is connected to the mesh."""

    @property
    def runs(self) -> bool:
        """Whether the agent is online and not stopped."""
        return self.is_online and self.state != STOPPED

    @property
    def display_state(self) -> str:
        """The state as people see it: an idle agent may be shown as ``held`` or ``standing down``."""
        return display_state(self.state, stood_down=self.stood_down, held=self.held)

    @property
    def needs_attention(self) -> bool:
        """Whether the agent waits for an answer, is parked, has crashed or has open questions."""
        return self.state in (AgentState.ASKING, AgentState.PARKED, AgentState.CRASHED) or self.questions > 0

    @property
    def budget_pct(self) -> float | None:
        """Percentage used of the agent's daily budget, of the kind that is nearest to its limit.

        None if the agent has no budget.
        """
        limits = ((self.tokens, self.budget_tokens), (self.cost_usd, self.budget_usd), (self.limit_pct, 100))
        shares = [100 * used / limit for used, limit in limits if limit and used is not None]
        return min(max(shares), _MOST_PCT) if shares else None

    def as_data(self) -> dict[str, Any]:
        """Return the agent's state as a dict with the JSON keys of ``culture status``."""
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
            "held_by": [{"nick": each.nick, "count": each.count, "why": each.reason} for each in self.held_by],
            "last_message": None,
            "told": self.updated.isoformat(),
            "connected": self.is_online,
            "questions": self.questions,
            "quiet": False,
        }


def agents(facts: Iterable[LedgerFact], online: Collection[str] | None = None) -> list[AgentView]:
    """Return the state of each agent that has published a ``state`` fact, sorted by nick.

    ``facts``: facts of any kind. ``online``: the connected nicks, in lower case by IRC's rules; None if that is
    unknown.
    """
    rows = list(facts)
    open_questions = Counter(
        fold(fact.nick) for fact in rows if fact.kind == FactKind.QUESTION and fact.value.get("open")
    )
    states = {fold(fact.nick): fact for fact in rows if fact.kind == FactKind.STATE}
    views = [_agent(fact, open_questions[nick], online is None or nick in online) for nick, fact in states.items()]
    return sorted(views, key=lambda agent: fold(agent.nick))


def _agent(fact: LedgerFact, questions: int, is_online: bool) -> AgentView:
    value = fact.value
    state = safe_values.text(value, "state", _LONGEST_WORD) or _UNKNOWN
    tokens = safe_values.amount(value, "budget-tokens")
    return AgentView(
        nick=fact.nick,
        server=fact.server,
        backend=safe_values.text(value, "backend", _LONGEST_WORD) or _UNKNOWN,
        state=state,
        updated=fact.at,
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
        is_online=is_online,
    )


def _held(value: object) -> Iterator[HeldMessages]:
    """Yield the entries of the list ``held-by`` in a state fact; malformed entries are skipped."""
    for each in value[:_MOST_SENDERS] if isinstance(value, list) else ():
        nick = safe_values.text(each, "nick", _LONGEST_WORD) if isinstance(each, Mapping) else ""
        if nick:
            yield HeldMessages(nick, safe_values.count(each, "count"), safe_values.text(each, "why", _LONGEST_WORD))
