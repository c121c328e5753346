"""The questions of agents as the ledger has them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from culture.ledger_views import safe_values
from culture.ledger_views.ledger import LedgerFact
from culture.protocol.names import fold
from culture.protocol.vocabulary import FactKind

_LONGEST_WORD, _LONGEST_ID = 60, 120


@dataclass(frozen=True, slots=True)
class QuestionView:
    """What an agent wants to know, and what became of it."""

    nick: str
    id: str
    server: str
    is_open: bool
    told: datetime
    asked: datetime
    deadline: datetime | None = None
    place: str = ""
    """Empty where not everybody may know."""
    text: str = ""
    """Empty where not everybody may know."""
    options: tuple[str, ...] = ()
    """The words to choose from; none where anything may be answered, or not everybody may know."""
    detail: tuple[str, ...] = ()
    """The first lines of what the text leaves out: a diff, a whole command."""
    more: int = 0
    """How many further lines of it the agent's own daemon has."""
    who: str = ""
    """Who may answer."""
    outcome: str = ""
    choice: str = ""
    by: str = ""
    by_class: str = ""
    answer: str = ""
    """The msgid of the answer."""
    verified: str = ""
    """What the server found when it looked that message up: true, false or unknown; empty where nobody answered."""
    verified_why: str = ""

    @property
    def verdict(self) -> str:
        """The same in words for people; empty where there is none."""
        words = {"true": "verified", "false": "NOT verified", "unknown": "unverified"}
        return words.get(self.verified, "")

    def age(self, now: datetime) -> float:
        """For how many seconds it is there."""
        return max((now - self.asked).total_seconds(), 0.0)

    def left(self, now: datetime) -> float | None:
        """How many seconds there are for an answer, 0 when the time is over; None when nobody knows."""
        return None if self.deadline is None else max((self.deadline - now).total_seconds(), 0.0)


def questions(facts: Iterable[LedgerFact]) -> list[QuestionView]:
    """All of them: those that wait, the oldest first, then those that are closed, the latest first."""
    found = {(fold(fact.nick), fact.key): _question(fact) for fact in facts if fact.kind == FactKind.QUESTION}
    waiting = sorted((each for each in found.values() if each.is_open), key=lambda each: (each.asked, each.nick))
    closed = [each for each in found.values() if not each.is_open]
    return waiting + sorted(closed, key=lambda each: (each.told, each.nick), reverse=True)


def find(questions: Iterable[QuestionView], nick: str, id: str) -> QuestionView | None:
    """The question that an agent calls by this id."""
    wanted = fold(nick), fold(id)
    return next((each for each in questions if (fold(each.nick), fold(each.id)) == wanted), None)


def _question(fact: LedgerFact) -> QuestionView:
    value = fact.value
    return QuestionView(
        nick=fact.nick,
        id=fact.key,
        server=fact.server,
        is_open=bool(value.get("open")),
        told=fact.at,
        asked=safe_values.moment(value, "asked") or fact.at,
        deadline=safe_values.moment(value, "deadline"),
        place=safe_values.text(value, "place", _LONGEST_WORD),
        text=safe_values.text(value, "text"),
        options=safe_values.words(value, "options"),
        detail=safe_values.lines(value, "detail"),
        more=safe_values.count(value, "more"),
        who=safe_values.text(value, "who"),
        outcome=safe_values.text(value, "outcome", _LONGEST_WORD).lower().replace("_", " "),
        choice=safe_values.text(value, "choice"),
        by=safe_values.text(value, "by", _LONGEST_WORD),
        by_class=safe_values.text(value, "class", _LONGEST_WORD),
        answer=safe_values.text(value, "answer", _LONGEST_ID),
        verified=safe_values.text(value, "verified", _LONGEST_WORD).lower(),
        verified_why=safe_values.text(value, "verified_why"),
    )
