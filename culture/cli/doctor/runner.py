"""Doing all checks at once, each within its time; one that fails is a finding itself."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from culture.cli.doctor.inventory import Inventory


class FindingSeverity(StrEnum):
    """How bad something is, from nothing to what has to be put right before anything works."""

    OK = "ok"
    HINT = "hint"
    WARNING = "warning"
    ERROR = "error"

    @property
    def weight(self) -> int:
        """For comparing."""
        return list(FindingSeverity).index(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found; never with a secret in it."""

    severity: FindingSeverity
    what: str
    why: str = ""
    next: str = ""
    """What to type or to write."""
    mend: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    """Does what ``next`` says, where nothing can be lost by it."""


def ok(what: str) -> Finding:
    """All is well."""
    return Finding(FindingSeverity.OK, what)


def hint(what: str, why: str, next: str, mend: Callable[[], None] | None = None) -> Finding:
    """Everything works, and could be better."""
    return Finding(FindingSeverity.HINT, what, why, next, mend)


def warning(what: str, why: str, next: str, mend: Callable[[], None] | None = None) -> Finding:
    """Something does not work, or soon will not."""
    return Finding(FindingSeverity.WARNING, what, why, next, mend)


def error(what: str, why: str, next: str, mend: Callable[[], None] | None = None) -> Finding:
    """Something that is wanted cannot work, or is open to those whom it is not for."""
    return Finding(FindingSeverity.ERROR, what, why, next, mend)


PATIENCE = 8.0
"""How long a check may take; most take milliseconds."""


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One thing to look at. The part of its name before the dot is its area."""

    name: str
    title: str
    """What is as it should be when nothing was found."""
    look: Callable[[Inventory], Iterable[Finding]]

    @property
    def area(self) -> str:
        """What it is about."""
        return self.name.partition(".")[0]


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What came of a check."""

    check: DoctorCheck
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> FindingSeverity:
        """The worst of what was found."""
        return max((each.severity for each in self.findings), key=lambda each: each.weight, default=FindingSeverity.OK)


def conduct(checks: Sequence[DoctorCheck], scene: Inventory, patience: float = PATIENCE) -> list[CheckOutcome]:
    """Do the checks, in no order; their outcomes in that of the table."""
    found: dict[str, tuple[Finding, ...]] = {}
    threads = [threading.Thread(target=_look, args=(check, scene, found), daemon=True) for check in checks]
    deadline = time.monotonic() + patience
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    return [CheckOutcome(check, found.get(check.name) or (_unfinished(check, patience),)) for check in checks]


def _look(check: DoctorCheck, scene: Inventory, found: dict[str, tuple[Finding, ...]]) -> None:
    try:
        found[check.name] = tuple(check.look(scene)) or (ok(check.title),)
    except OSError as failure:
        found[check.name] = (_unreadable(check, failure),)
    except Exception as failure:
        # The boundary: whatever is broken here, the other checks go on. What it says may hold anything.
        what = f"{check.name} could not be looked at: {type(failure).__name__}"
        found[check.name] = (warning(what, "this is a fault of `culture doctor` itself", "please report it"),)


def _unreadable(check: DoctorCheck, failure: OSError) -> Finding:
    place = failure.filename if isinstance(failure.filename, str) else ""
    return warning(
        f"{check.name} could not be looked at: {': '.join(filter(None, (place, failure.strerror)))}",
        "what cannot be read cannot be judged",
        f"ls -ld {place}" if place else "`culture doctor` again",
    )


def _unfinished(check: DoctorCheck, patience: float) -> Finding:
    return warning(
        f"{check.name} did not end within {patience:g} s",
        "a disk, a network or a program that is asked does not answer",
        "look at what it is about by hand, then `culture doctor` again",
    )


def mended(outcome: CheckOutcome) -> CheckOutcome:
    """The same after everything was done that can be done without loss."""
    return replace(outcome, findings=tuple(map(_mended, outcome.findings)))


def _mended(finding: Finding) -> Finding:
    if finding.mend is None:
        return finding
    try:
        finding.mend()
    except OSError as failure:
        return replace(finding, why=f"{finding.why}; it could not be mended: {failure.strerror}", mend=None)
    return ok(f"mended: {finding.what}")
