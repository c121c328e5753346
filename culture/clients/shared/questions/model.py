"""A question, and what came of it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Self

from culture.clients.shared.answers import ABORT, DENY, NO
from culture.clients.shared.trust import Vote, is_confirmed
from culture.protocol.text import Profile, clean, name_in_prompt
from culture.protocol.vocabulary import UserClass


class Outcome(StrEnum):
    """How a question ended; INTERROGATED is no end but a question back, ASKED none but the end of the wait."""

    ANSWERED = "ANSWERED"
    TIMED_OUT = "TIMED_OUT"
    DENIED = "DENIED"
    ABORTED = "ABORTED"
    INTERROGATED = "INTERROGATED"
    ASKED = "ASKED"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question, as the agent gets it."""

    outcome: Outcome
    text: str | None = None
    by: str | None = None
    account: str | None = None
    kind: str | None = None
    human_confirmed: bool = False
    msgid: str | None = None
    question: str | None = None
    action: str | None = None
    """What silence means, when nobody answered: pause, deny or abort; None when the agent goes on."""

    def as_data(self) -> dict[str, Any]:
        """The answer as JSON has it."""
        data = asdict(self)
        data["class"] = data.pop("kind")
        return data

    def for_agent(self) -> dict[str, Any]:
        """The same with the words and names of others cleaned for a model."""
        data = self.as_data()
        for key in ("by", "account", "msgid"):
            data[key] = data[key] and name_in_prompt(data[key])
        data["text"] = data["text"] and clean(data["text"], Profile.MODEL)
        return data

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Self:
        """The answer that JSON had."""
        fields = dict(data)
        return cls(Outcome(fields.pop("outcome")), kind=fields.pop("class"), **fields)


@dataclass(frozen=True, slots=True)
class Question:
    """One question; open as long as it has no answer."""

    number: int
    place: str
    """Where it was asked: a channel, or somebody's nick."""
    text: str
    options: tuple[str, ...]
    """What may be answered; none when anything may."""
    tool: str
    """The tool that the agent wants to use, where the question is a permission; else empty."""
    electorate: tuple[str, ...]
    """The agents that were in the channel when it was asked, less the asker."""
    task: str
    asked: float
    deadline: float
    action: str
    """What happens when nobody answers: pause, deny, abort, or nothing where the agent goes on."""
    msgids: tuple[str, ...] = ()
    """Of its lines on IRC; none as long as it is not known that it was posted."""
    answer: Answer | None = None
    choice: str = ""
    """Which option the answer chose."""
    closed: float | None = None
    told: bool = False
    """Whether the agent has had the outcome."""
    discussed: bool = False
    asides: int = 0
    overruled: bool = False

    @property
    def id(self) -> str:
        """How people name it."""
        return f"q{self.number}"

    @property
    def key(self) -> str:
        """By which its lines on IRC are known; that of no other question, of another run of the same agent either."""
        return f"{self.id}-{self.asked * 1000:.0f}"

    @property
    def kind(self) -> str:
        """``choice`` or ``open``."""
        return "choice" if self.options else "open"

    @property
    def is_open(self) -> bool:
        """Whether it waits for an answer."""
        return self.answer is None

    def as_data(self) -> dict[str, Any]:
        """The question as JSON has it, for those who look after the agent."""
        return {
            "id": self.id,
            "kind": self.kind,
            "place": self.place,
            "text": self.text,
            "options": list(self.options),
            "tool": self.tool or None,
            "electorate": list(self.electorate),
            "task": self.task or None,
            "asked": moment(self.asked),
            "deadline": moment(self.deadline),
            "timeout_action": self.action or None,
            "msgids": list(self.msgids),
            "answer": self.answer.as_data() if self.answer else None,
        }


def moment(at: float) -> str:
    """A time as JSON has it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def answered_by(question: Question, choice: str, vote: Vote) -> Answer:
    """What the deciding vote makes of a question."""
    return Answer(
        outcome_of(choice),
        vote.text,
        vote.nick,
        vote.account,
        vote.kind.value,
        is_confirmed(vote.kind, vote.account),
        vote.msgid,
        question.id,
    )


def outcome_of(choice: str) -> Outcome:
    """The end that an answer brings about."""
    if choice in (NO, DENY):
        return Outcome.DENIED
    return Outcome.ABORTED if choice == ABORT else Outcome.ANSWERED


def still_asked(question: Question) -> Answer:
    """Nobody has answered yet, and the call that asked waits no longer: the answer comes as a prompt."""
    return Answer(Outcome.ASKED, question=question.id)


def interrogated(question: Question, by: str, account: str | None, kind: UserClass, text: str, msgid: str) -> Answer:
    """Somebody asks back."""
    confirmed = is_confirmed(kind, account)
    return Answer(Outcome.INTERROGATED, text, by, account, kind.value, confirmed, msgid, question.id)
