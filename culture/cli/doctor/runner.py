"""Runs all checks in parallel within a time limit; a check that fails becomes a finding."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from culture.cli.doctor.inventory import Inventory


class FindingSeverity(StrEnum):
    """Severity of a finding: ok, hint, warning or error."""

    OK = "ok"
    HINT = "hint"
    WARNING = "warning"
    ERROR = "error"

    @property
    def weight(self) -> int:
        """Rank by which severities are compared; a worse severity has a higher rank."""
        return list(FindingSeverity).index(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check of the doctor found; it never contains a secret.

    ``what``: the fact. ``why``: why it matters. ``next``: what to do. ``mend``: a function that repairs it, for --fix.
    """

    severity: FindingSeverity
    what: str
    why: str = ""
    next: str = ""
    """Command or setting that mends it."""
    mend: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    """Function that does what ``next`` says, if nothing can be lost by it."""


def ok(what: str) -> Finding:
    """Return a finding of severity ok, which says that ``what`` is as it should be."""
    return Finding(FindingSeverity.OK, what)


def hint(what: str, why: str, next: str, mend: Callable[[], None] | None = None) -> Finding:
    """Return a finding of severity hint: ``what`` works, but could be better.

    ``why``: why that matters. ``next``: what to do. ``mend``: a function that repairs it, for --fix.
    """
    return Finding(FindingSeverity.HINT, what, why, next, mend)


def warning(what: str, why: str, next: str, mend: Callable[[], None] | None = None) -> Finding:
    """Return a finding of severity warning: ``what`` does not work, or soon will not.

    ``why``: why that matters. ``next``: what to do. ``mend``: a function that repairs it, for --fix.
    """
    return Finding(FindingSeverity.WARNING, what, why, next, mend)


def error(what: str, why: str, next: str, mend: Callable[[], None] | None = None) -> Finding:
    """Return a finding of severity error: ``what`` cannot work, or is open to strangers.

    ``why``: why that matters. ``next``: what to do. ``mend``: a function that repairs it, for --fix.
    """
    return Finding(FindingSeverity.ERROR, what, why, next, mend)


PATIENCE = 8.0
"""Seconds that a check may take; most take milliseconds."""


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """A check of the doctor: its name (``area.subject``) and the function that yields findings."""

    name: str
    title: str
    """Sentence that is true if nothing was found."""
    look: Callable[[Inventory], Iterable[Finding]]

    @property
    def area(self) -> str:
        """The part of the check's name before the dot, under which its findings are printed."""
        return self.name.partition(".")[0]


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """A check of the doctor, and the findings of its run."""

    check: DoctorCheck
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> FindingSeverity:
        """The worst severity among the check's findings; ok without findings."""
        return max((each.severity for each in self.findings), key=lambda each: each.weight, default=FindingSeverity.OK)


def run_checks(checks: Sequence[DoctorCheck], inventory: Inventory, patience: float = PATIENCE) -> list[CheckOutcome]:
    """Run the checks in parallel; return their outcomes in the order of ``checks``.

    ``inventory``: what they look at. A check that takes more than ``patience`` seconds gets a finding that says so.
    """
    findings: dict[str, tuple[Finding, ...]] = {}
    threads = [threading.Thread(target=_look, args=(check, inventory, findings), daemon=True) for check in checks]
    deadline = time.monotonic() + patience
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    return [CheckOutcome(check, findings.get(check.name) or (_unfinished(check, patience),)) for check in checks]


def _look(check: DoctorCheck, inventory: Inventory, findings: dict[str, tuple[Finding, ...]]) -> None:
    try:
        findings[check.name] = tuple(check.look(inventory)) or (ok(check.title),)
    except OSError as failure:
        findings[check.name] = (_unreadable(check, failure),)
    except Exception as failure:
        # Whatever fails here, the other checks go on. The message may contain anything, so it is not shown.
        what = f"{check.name} could not be looked at: {type(failure).__name__}"
        findings[check.name] = (warning(what, "this is a bug of `culture doctor` itself", "please report it"),)


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
        "a disk, a network or a program does not answer",
        "look at what it is about by hand, then `culture doctor` again",
    )


def repair(outcome: CheckOutcome) -> CheckOutcome:
    """Repair the findings of a check that can be repaired; return the outcome afterwards."""
    return replace(outcome, findings=tuple(map(_repair, outcome.findings)))


def _repair(finding: Finding) -> Finding:
    if finding.mend is None:
        return finding
    try:
        finding.mend()
    except OSError as failure:
        return replace(finding, why=f"{finding.why}; it could not be fixed: {failure.strerror}", mend=None)
    return ok(f"fixed: {finding.what}")
