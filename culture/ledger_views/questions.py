"""Questions of agents, open and closed, from the ``question`` facts of the ledger."""

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
    """One question of an agent, with its outcome and answer if it is closed."""

    nick: str
    id: str
    server: str
    is_open: bool
    updated: datetime
    asked: datetime
    deadline: datetime | None = None
    place: str = ""
    """Channel in which it was asked; empty if it was asked in private."""
    text: str = ""
    """Empty if it was asked in private."""
    options: tuple[str, ...] = ()
    """The allowed answers; empty if any text is allowed, or if it was asked in private."""
    detail: tuple[str, ...] = ()
    """First lines of the detail, such as a diff or a whole command."""
    more: int = 0
    """Number of further lines of the detail, which only the agent's daemon has."""
    who: str = ""
    """The people and agents who may answer, as a sentence."""
    outcome: str = ""
    choice: str = ""
    by: str = ""
    by_class: str = ""
    answer: str = ""
    """Msgid of the answer."""
    verified: str = ""
    """Result of the server's check of that message: true, false or unknown; empty without an answer."""
    verified_why: str = ""

    @property
    def verdict(self) -> str:
        """Whether the server verified who answered: ``verified``, ``NOT verified``, ``unverified``.

        Empty if the server checked nothing, for example without an answer.
        """
        words = {"true": "verified", "false": "NOT verified", "unknown": "unverified"}
        return words.get(self.verified, "")

    def age(self, now: datetime) -> float:
        """Return the seconds from the time at which the question was asked until ``now``."""
        return max((now - self.asked).total_seconds(), 0.0)

    def left(self, now: datetime) -> float | None:
        """Return the seconds from ``now`` until the question's deadline; None without a deadline.

        After the deadline it is 0.
        """
        return None if self.deadline is None else max((self.deadline - now).total_seconds(), 0.0)


def questions(facts: Iterable[LedgerFact]) -> list[QuestionView]:
    """Return all questions among the facts: open ones, oldest first, then closed, newest first."""
    views = {(fold(fact.nick), fact.key): _question(fact) for fact in facts if fact.kind == FactKind.QUESTION}
    pending = sorted((each for each in views.values() if each.is_open), key=lambda each: (each.asked, each.nick))
    closed = [each for each in views.values() if not each.is_open]
    return pending + sorted(closed, key=lambda each: (each.updated, each.nick), reverse=True)


def find(questions: Iterable[QuestionView], nick: str, id: str) -> QuestionView | None:
    """Return the question of the agent ``nick`` with this id, or None; case does not matter."""
    key = fold(nick), fold(id)
    return next((each for each in questions if (fold(each.nick), fold(each.id)) == key), None)


def _question(fact: LedgerFact) -> QuestionView:
    value = fact.value
    return QuestionView(
        nick=fact.nick,
        id=fact.key,
        server=fact.server,
        is_open=bool(value.get("open")),
        updated=fact.at,
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
