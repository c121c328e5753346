"""What the comparison concludes from its figures."""

import pytest

from bench.load import Run, medians
from bench.scenarios import SCENARIOS, Figure
from bench.table import comparison, number
from bench.targets import TARGETS, Against, Sense, Target, Verdict, target_for

RATE = Target("fan100", Figure.RATE, Sense.AT_LEAST, 2, Against.BETTER)
CPU = Target("chan", Figure.CPU, Sense.BELOW, 1, Against.BETTER)


def figures(figure: Figure, **values: float) -> dict[str, dict[Figure, float]]:
    return {server: {figure: value} for server, value in values.items()}


@pytest.mark.parametrize(
    ("ours", "verdict"), [(600.0, Verdict.PASS), (599.0, Verdict.FAIL)], ids=["at the limit", "just under it"]
)
def test_the_better_peer_is_the_one_that_delivers_more(ours: float, verdict: Verdict) -> None:
    assert RATE.judge(figures(Figure.RATE, culture=ours, ngircd=300, inspircd=200)) is verdict


@pytest.mark.parametrize(("ours", "verdict"), [(2.9, Verdict.PASS), (3.0, Verdict.FAIL), (5.0, Verdict.FAIL)])
def test_the_better_peer_is_the_one_that_costs_less(ours: float, verdict: Verdict) -> None:
    assert CPU.judge(figures(Figure.CPU, culture=ours, ngircd=8, inspircd=3)) is verdict


def test_a_target_is_not_met_while_a_peer_is_missing() -> None:
    assert RATE.judge(figures(Figure.RATE, culture=10_000, ngircd=1)) is Verdict.UNKNOWN
    assert RATE.judge(figures(Figure.RATE, ngircd=1, inspircd=1)) is Verdict.UNKNOWN


def test_a_run_that_was_not_verified_has_no_part_in_the_median() -> None:
    runs = [Run(ok, {Figure.P99: value}, 0, "", "") for ok, value in ((True, 1), (True, 3), (True, 5), (False, 99))]
    assert medians(runs) == {Figure.P99: 3}
    assert medians(runs[3:]) == {}


def test_every_target_is_a_row_of_the_table() -> None:
    assert [target for target in TARGETS if target.figure not in SCENARIOS[target.scenario].figures] == []
    assert len({(target.scenario, target.figure) for target in TARGETS}) == len(TARGETS)


def test_the_table_shows_ratios_and_verdicts() -> None:
    middle = figures(Figure.RATE, culture=3_000_000, ngircd=1_000_000, inspircd=500_000)
    row = next(line for line in comparison({"fan100": middle}, list(middle)).splitlines() if "deliveries/s" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:7] == ["3,000,000", "1,000,000", "500,000", "3.00×", "6.00×"]
    assert cells[7:] == [str(target_for("fan100", Figure.RATE)), "pass"]


@pytest.mark.parametrize(("value", "text"), [(None, "–"), (0.1234, "0.123"), (5.678, "5.68"), (43516.4, "43,516")])
def test_numbers_keep_three_digits(value: float | None, text: str) -> None:
    assert number(value) == text
