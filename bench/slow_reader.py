"""A client that stops reading: what the others notice of it."""

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.load import Run, build, measure, raise_file_limit
from bench.machine import describe
from bench.scenarios import SCENARIOS, Figure
from bench.servers import CULTURE_COMMAND, Server, culture, peers
from bench.table import markdown, number

P99_LIMIT = 2.0
CPU_LIMIT = 1.15


@dataclass(frozen=True, slots=True)
class Pair:
    """A run of fan100, and one with a client that stops reading."""

    without: Run
    slow: Run

    @property
    def verified(self) -> bool:
        """Everybody who reads got everything and stayed."""
        return self.without.verified and self.slow.verified

    def ratio(self, figure: Figure) -> float:
        """The figure with the slow reader as a multiple of that without."""
        return self.slow.figures[figure] / self.without.figures[figure]


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.slow_reader", description=__doc__)
    parser.add_argument("--pairs", type=int, default=5, help="default 5")
    parser.add_argument("--readers", type=int, default=1, metavar="N", help="clients that stop reading (default 1)")
    parser.add_argument("--server", default="culture", choices=["culture", "ngircd", "inspircd"])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run there")
    parser.add_argument("--culture-command", default=CULTURE_COMMAND, metavar="COMMAND", help="default: %(default)s")
    return parser.parse_args(argv)


def _server(name: str, culture_command: str) -> Server:
    for server in (culture(culture_command), *peers()):
        if server.name == name:
            return server
    raise SystemExit(f"{name} is not installed")


def _measure_pairs(server: Server, pairs: int, readers: int) -> list[Pair]:
    """With and without in turn: what the machine does meanwhile hits both alike."""
    load = SCENARIOS["fan100"].arguments
    return [Pair(measure(server, load), measure(server, f"{load} -X {readers}")) for _ in range(pairs)]


def _row(name: str, pair: Pair) -> list[str]:
    cells = [name]
    for figure in (Figure.P99, Figure.CPU):
        cells += [number(pair.without.figures[figure]), number(pair.slow.figures[figure]), f"{pair.ratio(figure):.2f}×"]
    return [*cells, str(pair.slow.stalled_dropped)]


def _table(pairs: Sequence[Pair]) -> str:
    head = ["pair", "p99 µs", "with", "ratio", "CPU s per million", "with", "ratio", "slow readers dropped"]
    return markdown([head, *(_row(str(number), pair) for number, pair in enumerate(pairs, start=1))])


def _judge(pairs: Sequence[Pair], figure: Figure, limit: float) -> bool:
    middle = median(pair.ratio(figure) for pair in pairs)
    held = middle <= limit
    print(f"{figure.label}: median ratio {middle:.2f}, at most {limit:g}: {'pass' if held else 'FAIL'}")
    return held


def _record(server: Server, pairs: Sequence[Pair]) -> dict[str, object]:
    return {
        "machine": describe(),
        "server": server.version(),
        "pairs": [
            {
                "without": pair.without.as_json(),
                "with": pair.slow.as_json(),
                "slow_readers_dropped": pair.slow.stalled_dropped,
            }
            for pair in pairs
        ],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the pairs; 1 when somebody else was harmed or a limit is passed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments = _arguments(argv)
    server = _server(arguments.server, arguments.culture_command)
    raise_file_limit()
    build()
    pairs = _measure_pairs(server, arguments.pairs, arguments.readers)
    if arguments.json:
        arguments.json.write_text(json.dumps(_record(server, pairs), indent=1) + "\n", encoding="utf-8")
    failed = [run.error for pair in pairs for run in (pair.without, pair.slow) if not run.verified]
    if failed:
        print("not verified: " + "; ".join(failed), file=sys.stderr)
        return 1
    print(_table(pairs))
    print("no other client was dropped, every delivery arrived once and in order")
    held = [_judge(pairs, Figure.P99, P99_LIMIT), _judge(pairs, Figure.CPU, CPU_LIMIT)]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
