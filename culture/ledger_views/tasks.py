"""Tasks of teams, and the purposes of agents' turns, from the ``task`` facts."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from culture.ledger_views import safe_values
from culture.ledger_views.ledger import LedgerFact
from culture.protocol.vocabulary import FactKind

STAGES = ("taken", "queued", "working", "waiting", "done", "failed")
"""Stages of a team's task, in order."""
_LONGEST_WORD = 80
_TURN = "turn-"


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task of a team, as the newest fact about it in the ledger describes it."""

    team: str
    """Nick of the team."""
    id: str
    stage: str
    updated: datetime
    text: str = ""
    by: str = ""
    manager: str = ""
    channel: str = ""
    branch: str = ""
    worktree: str = ""
    note: str = ""
    """Last note of its manager."""
    shifts: int = 0
    """Number of hand-offs so far."""
    members: tuple[str, ...] = ()
    tokens: int = 0
    cost_usd: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the task is done or has failed."""
        return self.stage in ("done", "failed")


@dataclass(frozen=True, slots=True)
class TurnPurpose:
    """The purpose of one turn of an agent: who asked for what, and where."""

    nick: str
    key: str
    began: datetime
    ended: datetime | None = None
    outcome: str = ""
    place: str = ""
    """Channel of the request; empty for a private one, as are ``text`` and ``by``."""
    text: str = ""
    by: str = ""


def tasks(facts: Iterable[LedgerFact]) -> list[TaskView]:
    """Return the tasks of all teams among the facts, the last updated first."""
    views = [_task(fact) for fact in facts if fact.kind == FactKind.TASK and not _is_turn(fact)]
    return sorted(views, key=lambda task: (task.updated, task.team, task.id), reverse=True)


def by_stage(tasks: Iterable[TaskView]) -> dict[str, list[TaskView]]:
    """Group tasks by stage, from ``taken`` to ``failed``; unknown stages come last."""
    stages: dict[str, list[TaskView]] = {stage: [] for stage in STAGES}
    for task in tasks:
        stages.setdefault(task.stage, []).append(task)
    return stages


def turn_purposes(facts: Iterable[LedgerFact]) -> list[TurnPurpose]:
    """Return the purposes of all turns among the facts, the newest turn first."""
    purposes = [_purpose(fact) for fact in facts if fact.kind == FactKind.TASK and _is_turn(fact)]
    return sorted(purposes, key=lambda purpose: (purpose.began, purpose.nick, purpose.key), reverse=True)


def _is_turn(fact: LedgerFact) -> bool:
    return "began" in fact.value or (fact.key.startswith(_TURN) and "state" not in fact.value)


def _task(fact: LedgerFact) -> TaskView:
    value = fact.value
    return TaskView(
        team=fact.nick,
        id=fact.key,
        stage=safe_values.text(value, "state", _LONGEST_WORD) or "?",
        updated=fact.at,
        text=safe_values.text(value, "text"),
        by=safe_values.text(value, "by", _LONGEST_WORD),
        manager=safe_values.text(value, "manager", _LONGEST_WORD),
        channel=safe_values.text(value, "channel", _LONGEST_WORD),
        branch=safe_values.text(value, "branch", _LONGEST_WORD),
        worktree=safe_values.text(value, "worktree", _LONGEST_WORD),
        note=safe_values.text(value, "said"),
        shifts=safe_values.count(value, "shifts"),
        members=safe_values.words(value, "members"),
        tokens=safe_values.count(value, "tokens"),
        cost_usd=safe_values.amount(value, "cost_usd") or 0.0,
    )


def _purpose(fact: LedgerFact) -> TurnPurpose:
    value = fact.value
    return TurnPurpose(
        nick=fact.nick,
        key=fact.key,
        began=safe_values.moment(value, "began") or fact.at,
        ended=safe_values.moment(value, "ended"),
        outcome=safe_values.text(value, "outcome", _LONGEST_WORD),
        place=safe_values.text(value, "place", _LONGEST_WORD),
        text=safe_values.text(value, "text"),
        by=safe_values.text(value, "by", _LONGEST_WORD),
    )
