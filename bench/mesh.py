"""Two linked servers: messages relayed per second, what a hop adds to latency, and the burst of a big server."""

import argparse
import json
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from bench.burst import Burst, burst
from bench.machine import describe
from bench.relay import Latency, Relay, latency, relay
from bench.table import markdown, number

LEAST_RELAYED = 20_000
MOST_ADDED_US = 1_000
MOST_BURST_S = 5.0
OPEN_FILES = 12_000


@dataclass
class Report:
    """The medians, which of them are missed, and the runs they are from."""

    rows: list[list[str]] = field(default_factory=lambda: [["figure", "median", "wanted"]])
    record: dict[str, object] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def figure(self, name: str, values: Iterable[float], least: float | None = None, most: float | None = None) -> None:
        """Note the median of a figure and whether it is within its bounds."""
        value = median(values)
        self.record[name] = round(value, 3)
        wanted = f"at least {least:,}" if least is not None else f"at most {most:,}" if most is not None else ""
        self.rows.append([name, number(value), wanted])
        if (least is not None and value < least) or (most is not None and value > most):
            self.missed.append(name)

    def runs(self, name: str, runs: Iterable[Relay | Latency | Burst]) -> None:
        """Note every run."""
        self.record[name] = [asdict(run) for run in runs]


def _relay(arguments: argparse.Namespace, report: Report) -> None:
    runs = [relay(arguments.messages, arguments.history) for _ in range(arguments.runs)]
    report.figure("relayed_per_s", (run.per_s for run in runs), least=LEAST_RELAYED)
    report.figure("spark_cpu_s_per_million", (run.spark_cpu_s_per_million for run in runs))
    report.figure("thor_cpu_s_per_million", (run.thor_cpu_s_per_million for run in runs))
    report.runs("relay", runs)


def _latency(arguments: argparse.Namespace, report: Report) -> None:
    for kind in ("channel", "private"):
        runs = [latency(kind, arguments.history) for _ in range(arguments.runs)]
        report.figure(f"{kind}_same_server_p50_us", (run.same_server_p50_us for run in runs))
        report.figure(f"{kind}_added_per_hop_p50_us", (run.added_us for run in runs), most=MOST_ADDED_US)
        report.figure(f"{kind}_one_hop_p99_us", (run.one_hop_p99_us for run in runs))
        report.runs(f"latency_{kind}", runs)


def _burst(arguments: argparse.Namespace, report: Report) -> None:
    runs = [burst(arguments.users, arguments.channels, arguments.history) for _ in range(arguments.runs)]
    report.figure("burst_s", (run.seconds for run in runs), most=MOST_BURST_S)
    report.figure("longest_answer_meanwhile_ms", (run.longest_answer_ms for run in runs))
    report.runs("burst", runs)


PARTS: dict[str, Callable[[argparse.Namespace, Report], None]] = {
    "relay": _relay,
    "latency": _latency,
    "burst": _burst,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.mesh", description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=PARTS, action="append", help="one part; may be repeated")
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--channels", type=int, default=1_000)
    parser.add_argument("--no-history", dest="history", action="store_false", help="without the history on disk")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the medians; 1 where one is missed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments = _parser().parse_args(argv)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, OPEN_FILES), hard))
    report = Report()
    for name in arguments.only or PARTS:
        PARTS[name](arguments, report)
    print(markdown(report.rows))
    if report.missed:
        print(f"missed: {', '.join(report.missed)}")
    if arguments.json:
        said = {"machine": describe(), "history": arguments.history, **report.record}
        arguments.json.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
