"""What a check says: how bad it is, what it is, why it matters, and what to type next."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """How bad something is, from nothing to what has to be put right before anything works."""

    OK = "ok"
    HINT = "hint"
    WARNING = "warning"
    ERROR = "error"

    @property
    def weight(self) -> int:
        """For comparing."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found; never with a secret in it."""

    severity: Severity
    what: str
    why: str = ""
    next: str = ""
    """What to type or to write."""
    mend: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    """Does what ``next`` says, where nothing can be lost by it."""


def ok(what: str) -> Finding:
    """All is well."""
    return Finding(Severity.OK, what)


def hint(what: str, why: str, next: str, mend: Callable[[], None] | None = None) -> Finding:
    """Everything works, and could be better."""
    return Finding(Severity.HINT, what, why, next, mend)


def warning(what: str, why: str, next: str, mend: Callable[[], None] | None = None) -> Finding:
    """Something does not work, or soon will not."""
    return Finding(Severity.WARNING, what, why, next, mend)


def error(what: str, why: str, next: str, mend: Callable[[], None] | None = None) -> Finding:
    """Something that is wanted cannot work, or is open to those whom it is not for."""
    return Finding(Severity.ERROR, what, why, next, mend)
