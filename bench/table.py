"""The comparison as a Markdown table."""

from collections.abc import Mapping, Sequence

from bench.scenarios import SCENARIOS, Figure
from bench.targets import Medians, target_for

NOTHING = "–"


def number(value: float | None) -> str:
    """Three significant digits, and thousands separated."""
    if value is None:
        return NOTHING
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3}f}"


def ratio(ours: float | None, theirs: float | None) -> str:
    """Ours as a multiple of theirs."""
    return f"{ours / theirs:.2f}×" if ours is not None and theirs else NOTHING


def _row(scenario: str, figure: Figure, medians: Medians, servers: Sequence[str]) -> list[str]:
    values = {name: medians.get(name, {}).get(figure) for name in servers}
    target = target_for(scenario, figure)
    return [
        scenario,
        figure.label,
        *(number(values[name]) for name in servers),
        *(ratio(values.get("culture"), values[name]) for name in servers if name != "culture"),
        str(target) if target else "",
        target.judge(medians).value if target else "",
    ]


def comparison(results: Mapping[str, Medians], servers: Sequence[str]) -> str:
    """One row per scenario and figure, with culture as a multiple of each peer and what came of the target."""
    ratios = [f"culture / {name}" for name in servers if name != "culture"]
    rows = [["scenario", "figure", *servers, *ratios, "target", "verdict"]]
    for scenario, medians in results.items():
        rows += [_row(scenario, figure, medians, servers) for figure in SCENARIOS[scenario].figures]
    return markdown(rows)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """The rows, the first of them as the head, padded to be read as plain text too."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])
