"""Findings for people, grouped by what they are about, and for programs."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import typer

from culture.cli import output
from culture.cli.doctor.runner import CheckOutcome, Finding, FindingSeverity
from culture.cli.humanize import counted
from culture.cli.output import is_coloured

_COLOURS = {
    FindingSeverity.OK: typer.colors.GREEN,
    FindingSeverity.HINT: typer.colors.CYAN,
    FindingSeverity.WARNING: typer.colors.YELLOW,
    FindingSeverity.ERROR: typer.colors.RED,
}
_WIDTH = 100
_MARGIN = " " * 11


def as_text(outcomes: Sequence[CheckOutcome], seconds: float, *, everything: bool = False) -> str:
    """What a person reads: what was found, area by area, then what is well, then how much that is."""
    lines: list[str] = []
    for area, group in groupby(outcomes, key=lambda each: each.check.area):
        found = list(_worth_showing(group, everything))
        if found:
            lines += ["", typer.style(area, bold=True) if is_coloured() else area]
            lines += [line for each in found for line in _lines(each)]
    well = [] if everything else _well(outcomes)
    if well:
        lines += ["", *_wrapped(f"well: {', '.join(well)}", "")]
    lines += ["", f"{counted(len(outcomes), 'check', 'checks')} in {seconds:.1f} s: {_summary(outcomes)}."]
    return "\n".join(lines[1:])


def as_data(outcomes: Sequence[CheckOutcome], seconds: float) -> str:
    """The same for programs, with all that is well."""
    findings = [_row(outcome, each) for outcome in outcomes for each in outcome.findings]
    return output.as_json({"worst": worst(outcomes).value, "seconds": round(seconds, 3), "findings": findings})


def worst(outcomes: Sequence[CheckOutcome]) -> FindingSeverity:
    """How bad it is in all."""
    return max((each.worst for each in outcomes), key=lambda each: each.weight, default=FindingSeverity.OK)


def _worth_showing(group: Iterator[CheckOutcome], everything: bool) -> Iterator[Finding]:
    for outcome in group:
        for each in outcome.findings:
            if everything or each.severity is not FindingSeverity.OK or each.what.startswith("mended"):
                yield each


def _well(outcomes: Sequence[CheckOutcome]) -> list[str]:
    areas = {each.check.area: FindingSeverity.OK for each in outcomes}
    for each in outcomes:
        areas[each.check.area] = max(areas[each.check.area], each.worst, key=lambda one: one.weight)
    return [area for area, severity in areas.items() if severity is FindingSeverity.OK]


def _lines(finding: Finding) -> Iterator[str]:
    label = f"{finding.severity.value:<7}"
    first, *rest = _wrapped(output.shown(finding.what))
    shown = typer.style(label, fg=_COLOURS[finding.severity], bold=True) if is_coloured() else label
    yield f"  {shown}  {first.lstrip()}"
    yield from rest
    if finding.why:
        yield from _wrapped(output.shown(f"{finding.why}."))
    if finding.next:
        # Not broken into lines: it is for copying.
        yield f"{_MARGIN}-> {output.shown(finding.next)}"


def _wrapped(text: str, margin: str = _MARGIN) -> list[str]:
    plain = " ".join(text.split())
    made = textwrap.wrap(
        plain, _WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    )
    return made or [""]


def _summary(outcomes: Sequence[CheckOutcome]) -> str:
    counts = Counter(each.severity for outcome in outcomes for each in outcome.findings)
    bad = [
        severity for severity in reversed(FindingSeverity) if severity is not FindingSeverity.OK and counts[severity]
    ]
    return ", ".join(counted(counts[each], each.value, f"{each.value}s") for each in bad) or "all is well"


def _row(outcome: CheckOutcome, finding: Finding) -> dict[str, Any]:
    return {
        "check": outcome.check.name,
        "area": outcome.check.area,
        "severity": finding.severity.value,
        "what": finding.what,
        "why": finding.why,
        "next": finding.next,
        "fixable": finding.mend is not None,
    }
