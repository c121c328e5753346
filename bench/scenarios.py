"""The scenarios that are measured, and the figures that are read from each."""

from dataclasses import dataclass
from enum import Enum


class Figure(Enum):
    """A figure of a run; the value is its name in the generator's JSON line."""

    RATE = "deliv_per_s"
    CPU = "srv_cpu_s_per_M"
    P50 = "p50_us"
    P99 = "p99_us"
    REGISTERED = "reg_s"
    MEMORY = "rss_idle_per_conn_kb"
    IDLE_CPU = "idle_cpu_s"

    @property
    def label(self) -> str:
        """The name for people, with the unit."""
        return _LABELS[self]


_LABELS = {
    Figure.RATE: "deliveries/s",
    Figure.CPU: "CPU s per million",
    Figure.P50: "p50 µs",
    Figure.P99: "p99 µs",
    Figure.REGISTERED: "registered in s",
    Figure.MEMORY: "KiB per client",
    Figure.IDLE_CPU: "idle CPU s",
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One load: what the generator is told, and what is worth reading."""

    name: str
    arguments: str
    figures: tuple[Figure, ...] = (Figure.RATE, Figure.CPU, Figure.P50, Figure.P99)


IDLE_SECONDS = 10

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("fan100", "-s fanout -n 100 -S 10 -w 8 -b 64 -m 1000"),
        Scenario("fan100w1", "-s fanout -n 100 -S 10 -w 1 -b 64 -m 500"),
        Scenario("fan1000s1", "-s fanout -n 1000 -S 1 -w 1 -b 64 -m 500"),
        Scenario("fan1000s5", "-s fanout -n 1000 -S 5 -w 8 -b 64 -m 200"),
        Scenario("dm1", "-s dm -D 1 -w 64 -b 64 -m 60000"),
        Scenario("dm50", "-s dm -D 50 -w 8 -b 64 -m 4000"),
        Scenario("pingpong", "-s pingpong -b 64 -m 5000", (Figure.P50, Figure.P99, Figure.CPU)),
        Scenario("chan", "-s channels -n 500 -C 200 -k 20 -w 50 -b 64 -m 20000"),
        Scenario("paced100", "-s fanout -n 100 -S 10 -r 100 -b 64 -m 30", (Figure.P50, Figure.P99, Figure.CPU)),
        Scenario(
            "idle5000",
            f"-s idle -n 5000 -J 50 -I {IDLE_SECONDS}",
            (Figure.REGISTERED, Figure.MEMORY, Figure.IDLE_CPU),
        ),
    )
}
