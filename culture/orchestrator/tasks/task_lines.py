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
    """Status of a task that its manager reports in a ``TASK:`` line."""

    DONE = "done"
    FAILED = "failed"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class NewTask:
    """A ``TASK:`` line that requests a new task."""

    text: str


@dataclass(frozen=True, slots=True)
class Wake:
    """A ``TASK:`` line that prompts a member by name."""

    who: str
    text: str


@dataclass(frozen=True, slots=True)
class NewWorker:
    """A ``TASK:`` line that requests a worker, written in a task's channel."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class StatusReport:
    """A ``TASK:`` line that reports the status of a task."""

    id: str
    how: TaskReport
    text: str


TaskLine = NewTask | Wake | NewWorker | StatusReport


def parse(text: str) -> TaskLine | None:
    """Return the request of a ``TASK:`` line; None if the text is no such line."""
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
    """Author of a ``TASK:`` line, with the class (human, agent, ...) that the server states."""

    nick: str
    kind: UserClass


def may_request(author: LineAuthor, line: TaskLine, em: str, manager: str | None) -> bool:
    """Return whether an author may write this ``TASK:`` line.

    People and the EM may write any; the manager of the line's task those about workers and reports. ``em`` and
    ``manager`` are nicks. A member's nick counts only with the class agent: another user may use the nick while the
    member is away.
    """
    if author.kind is UserClass.HUMAN:
        return True
    if author.kind is not UserClass.AGENT:
        return False
    if fold(author.nick) == fold(em):
        return True
    owns = manager is not None and fold(author.nick) == fold(manager)
    return owns and isinstance(line, NewWorker | StatusReport | Wake)
