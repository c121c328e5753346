"""The tasks of teams, and what the turns of agents were for."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from culture.ledger_views import safe_values
from culture.ledger_views.ledger import LedgerFact
from culture.protocol.vocabulary import FactKind

STAGES = ("taken", "queued", "working", "waiting", "done", "failed")
"""How far the task of a team comes."""
_LONGEST_WORD = 80
_TURN = "turn-"


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task that a team has taken on."""

    team: str
    """The nick of who says so."""
    id: str
    stage: str
    told: datetime
    text: str = ""
    by: str = ""
    manager: str = ""
    channel: str = ""
    branch: str = ""
    worktree: str = ""
    said: str = ""
    """What its owner said of it last."""
    shifts: int = 0
    """How often somebody has handed over."""
    members: tuple[str, ...] = ()
    tokens: int = 0
    cost_usd: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether nobody works on it any more."""
        return self.stage in ("done", "failed")


@dataclass(frozen=True, slots=True)
class TurnPurpose:
    """What a turn of an agent is or was for."""

    nick: str
    key: str
    began: datetime
    ended: datetime | None = None
    outcome: str = ""
    place: str = ""
    """Empty where not everybody may know, as are text and by."""
    text: str = ""
    by: str = ""


def tasks(facts: Iterable[LedgerFact]) -> list[TaskView]:
    """The tasks of teams: those that are told of last come first."""
    found = [_task(fact) for fact in facts if fact.kind == FactKind.TASK and not _is_errand(fact)]
    return sorted(found, key=lambda task: (task.told, task.team, task.id), reverse=True)


def by_stage(tasks: Iterable[TaskView]) -> dict[str, list[TaskView]]:
    """The tasks of each stage; a stage that is none of ours is behind them."""
    found: dict[str, list[TaskView]] = {stage: [] for stage in STAGES}
    for task in tasks:
        found.setdefault(task.stage, []).append(task)
    return found


def errands(facts: Iterable[LedgerFact]) -> list[TurnPurpose]:
    """What the turns of agents were for, the latest first."""
    found = [_errand(fact) for fact in facts if fact.kind == FactKind.TASK and _is_errand(fact)]
    return sorted(found, key=lambda errand: (errand.began, errand.nick, errand.key), reverse=True)


def _is_errand(fact: LedgerFact) -> bool:
    return "began" in fact.value or (fact.key.startswith(_TURN) and "state" not in fact.value)


def _task(fact: LedgerFact) -> TaskView:
    value = fact.value
    return TaskView(
        team=fact.nick,
        id=fact.key,
        stage=safe_values.text(value, "state", _LONGEST_WORD) or "?",
        told=fact.at,
        text=safe_values.text(value, "text"),
        by=safe_values.text(value, "by", _LONGEST_WORD),
        manager=safe_values.text(value, "manager", _LONGEST_WORD),
        channel=safe_values.text(value, "channel", _LONGEST_WORD),
        branch=safe_values.text(value, "branch", _LONGEST_WORD),
        worktree=safe_values.text(value, "worktree", _LONGEST_WORD),
        said=safe_values.text(value, "said"),
        shifts=safe_values.count(value, "shifts"),
        members=safe_values.words(value, "members"),
        tokens=safe_values.count(value, "tokens"),
        cost_usd=safe_values.amount(value, "cost_usd") or 0.0,
    )


def _errand(fact: LedgerFact) -> TurnPurpose:
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
