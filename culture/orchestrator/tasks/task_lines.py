"""``TASK:`` lines: what they want, and whether whoever wrote them may want it. They wake; they authorise nobody."""

import re
from dataclasses import dataclass
from enum import StrEnum

from culture.config.team import ROLES
from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass

WORKERS = ROLES[2:]
_TASK = re.compile(r"\s*TASK:\s*(.+)", re.DOTALL)
_REPORT = re.compile(
    r"(?P<id>[a-z][a-z0-9-]*-[0-9]+)\s+(?P<how>done|failed|waiting)\b[:.,\s—–-]*(?P<text>.*)", re.DOTALL
)
_MEMBER = re.compile(r"@(?P<who>[A-Za-z0-9_-]+)[:,]?\s+(?P<text>.+)", re.DOTALL)
_WORKER = re.compile(rf"(?P<role>{'|'.join(WORKERS)})\s*:\s*(?P<text>.+)", re.DOTALL | re.IGNORECASE)


class TaskReport(StrEnum):
    """How a task stands, in the words of who owns it."""

    DONE = "done"
    FAILED = "failed"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class NewTask:
    """Something new is to be done."""

    text: str


@dataclass(frozen=True, slots=True)
class Wake:
    """A member is meant by name."""

    who: str
    text: str


@dataclass(frozen=True, slots=True)
class NewWorker:
    """A worker is wanted in a task's channel."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Reported:
    """A manager says how its task stands."""

    id: str
    how: TaskReport
    text: str


Wanted = NewTask | Wake | NewWorker | Reported


def read(text: str) -> Wanted | None:
    """What a line wants; None when it is no ``TASK:`` line."""
    found = _TASK.fullmatch(text)
    if found is None:
        return None
    rest = found[1].strip()
    if match := _REPORT.fullmatch(rest):
        return Reported(match["id"], TaskReport(match["how"]), match["text"].strip())
    if match := _MEMBER.fullmatch(rest):
        return Wake(match["who"], match["text"].strip())
    if match := _WORKER.fullmatch(rest):
        return NewWorker(match["role"].lower(), match["text"].strip())
    return NewTask(rest) if rest else None


@dataclass(frozen=True, slots=True)
class LineAuthor:
    """Who wrote a line, as the server tells it."""

    nick: str
    kind: UserClass


def may(speaker: LineAuthor, wanted: Wanted, em: str, manager: str | None) -> bool:
    """Whether this may be asked for by them; ``manager`` is who owns the task that it concerns.

    The nick of a member counts with the class of an agent alone: somebody else may have it while it is away.
    """
    if speaker.kind is UserClass.HUMAN:
        return True
    if speaker.kind is not UserClass.AGENT:
        return False
    if fold(speaker.nick) == fold(em):
        return True
    owns = manager is not None and fold(speaker.nick) == fold(manager)
    return owns and isinstance(wanted, NewWorker | Reported | Wake)
