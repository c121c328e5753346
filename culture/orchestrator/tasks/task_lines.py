"""``TASK:`` lines: parses them, and decides whether their author may request that.

A line only starts work; it grants no permission to whoever does the work.
"""

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
    """Status of a task as its manager reports it."""

    DONE = "done"
    FAILED = "failed"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class NewTask:
    """Requests a new task."""

    text: str


@dataclass(frozen=True, slots=True)
class Wake:
    """Addresses a member by name."""

    who: str
    text: str


@dataclass(frozen=True, slots=True)
class NewWorker:
    """Requests a worker, in a task's channel."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class StatusReport:
    """Reports the status of a task."""

    id: str
    how: TaskReport
    text: str


TaskLine = NewTask | Wake | NewWorker | StatusReport


def parse(text: str) -> TaskLine | None:
    """Parse a ``TASK:`` line; return None if the text is no such line."""
    line = _TASK.fullmatch(text)
    if line is None:
        return None
    rest = line[1].strip()
    if match := _REPORT.fullmatch(rest):
        return StatusReport(match["id"], TaskReport(match["how"]), match["text"].strip())
    if match := _MEMBER.fullmatch(rest):
        return Wake(match["who"], match["text"].strip())
    if match := _WORKER.fullmatch(rest):
        return NewWorker(match["role"].lower(), match["text"].strip())
    return NewTask(rest) if rest else None


@dataclass(frozen=True, slots=True)
class LineAuthor:
    """Author of a line, with the class that the server vouches for."""

    nick: str
    kind: UserClass


def may_request(author: LineAuthor, line: TaskLine, em: str, manager: str | None) -> bool:
    """Whether an author may request this; ``manager`` is the manager of the task concerned.

    A member's nick counts only with the class agent: another user may use the nick while the member is away.
    """
    if author.kind is UserClass.HUMAN:
        return True
    if author.kind is not UserClass.AGENT:
        return False
    if fold(author.nick) == fold(em):
        return True
    owns = manager is not None and fold(author.nick) == fold(manager)
    return owns and isinstance(line, NewWorker | StatusReport | Wake)
