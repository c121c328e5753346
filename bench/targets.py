"""What culture must reach beside its peers, and whether it did."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from bench.scenarios import IDLE_SECONDS, Figure

Medians = Mapping[str, Mapping[Figure, float]]
"""The medians of one scenario by the name of the server."""


class Sense(Enum):
    """How a figure is compared with its limit."""

    AT_LEAST = "≥"
    AT_MOST = "≤"
    BELOW = "<"

    def holds(self, value: float, limit: float) -> bool:
        """Is ``value`` on the right side of ``limit``?"""
        match self:
            case Sense.AT_LEAST:
                return value >= limit
            case Sense.AT_MOST:
                return value <= limit
            case Sense.BELOW:
                return value < limit


class Against(Enum):
    """What the factor is a multiple of."""

    BETTER = "the better peer"
    INSPIRCD = "inspircd"
    NOBODY = ""


class Verdict(Enum):
    """What came of a target."""

    PASS = "pass"
    FAIL = "FAIL"
    UNKNOWN = "not measured"


@dataclass(frozen=True, slots=True)
class Target:
    """One limit: ``factor`` times the figure of another server, or ``factor`` itself."""

    scenario: str
    figure: Figure
    sense: Sense
    factor: float
    against: Against = Against.NOBODY

    def __str__(self) -> str:
        if self.against is Against.NOBODY:
            return f"{self.sense.value} {self.factor:g}"
        return f"{self.sense.value} {self.factor:g} × {self.against.value}"

    def judge(self, medians: Medians) -> Verdict:
        """Compare culture's median with the limit."""
        ours = medians.get("culture", {}).get(self.figure)
        limit = self._limit(medians)
        if ours is None or limit is None:
            return Verdict.UNKNOWN
        return Verdict.PASS if self.sense.holds(ours, limit) else Verdict.FAIL

    def _limit(self, medians: Medians) -> float | None:
        match self.against:
            case Against.NOBODY:
                return self.factor
            case Against.INSPIRCD:
                theirs = [medians.get("inspircd", {}).get(self.figure)]
            case Against.BETTER:
                theirs = [medians.get(name, {}).get(self.figure) for name in ("ngircd", "inspircd")]
        known = [value for value in theirs if value is not None]
        if len(known) < len(theirs):
            return None
        best = max(known) if self.figure is Figure.RATE else min(known)
        return self.factor * best


IDLE_CPU_SHARE = 0.01
"""Of one core: what is still called none."""

TARGETS = (
    Target("fan100", Figure.RATE, Sense.AT_LEAST, 2, Against.BETTER),
    Target("fan100", Figure.CPU, Sense.AT_MOST, 1, Against.INSPIRCD),
    Target("fan100", Figure.P99, Sense.BELOW, 1, Against.BETTER),
    Target("fan1000s1", Figure.CPU, Sense.AT_MOST, 1.3, Against.INSPIRCD),
    Target("fan1000s5", Figure.RATE, Sense.AT_LEAST, 1, Against.BETTER),
    Target("dm50", Figure.CPU, Sense.AT_MOST, 3.5, Against.INSPIRCD),
    Target("pingpong", Figure.P50, Sense.AT_MOST, 1, Against.BETTER),
    Target("chan", Figure.CPU, Sense.BELOW, 1, Against.BETTER),
    Target("paced100", Figure.P99, Sense.BELOW, 1, Against.BETTER),
    Target("idle5000", Figure.REGISTERED, Sense.AT_MOST, 1.5),
    Target("idle5000", Figure.MEMORY, Sense.AT_MOST, 11),
    Target("idle5000", Figure.IDLE_CPU, Sense.AT_MOST, IDLE_CPU_SHARE * IDLE_SECONDS),
)


def target_for(scenario: str, figure: Figure) -> Target | None:
    """The target for a figure of a scenario, if there is one."""
    return next((target for target in TARGETS if (target.scenario, target.figure) == (scenario, figure)), None)
