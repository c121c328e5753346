"""Culture beside ngIRCd and InspIRCd: interleaved runs, medians, ratios, targets."""

import argparse
import json
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.load import Run, build, measure, medians, raise_file_limit
from bench.record import Results, read_medians, record
from bench.scenarios import SCENARIOS, Scenario
from bench.servers import CULTURE_COMMAND, Server, culture, peers
from bench.table import comparison, number
from bench.targets import TARGETS, Medians, Verdict


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="per scenario and server (default 3)")
    parser.add_argument("--only", default=",".join(SCENARIOS), help="scenarios, with commas between")
    parser.add_argument("--servers", default="culture,ngircd,inspircd", help="servers, with commas between")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run and the medians there")
    parser.add_argument("--table", type=Path, metavar="FILE", help="measure nothing: print the table of such a file")
    parser.add_argument("--culture-command", default=CULTURE_COMMAND, metavar="COMMAND", help="default: %(default)s")
    parser.add_argument("--pin", action="store_true", help="a core for the server, another for the generator")
    parser.add_argument("--check", action="store_true", help="a missed target is a failure too")
    return parser.parse_args(argv)


def _scenarios(names: str) -> list[Scenario]:
    unknown = sorted(set(names.split(",")) - set(SCENARIOS))
    if unknown:
        raise SystemExit(f"no such scenario: {', '.join(unknown)} (there are {', '.join(SCENARIOS)})")
    return [SCENARIOS[name] for name in names.split(",")]


def _servers(names: str, culture_command: str) -> list[Server]:
    known = {server.name: server for server in (culture(culture_command), *peers())}
    for name in names.split(","):
        if name not in known:
            print(f"{name} is not installed: left out", file=sys.stderr)
    return [known[name] for name in names.split(",") if name in known]


def _progress(scenario: Scenario, server: Server, run: Run) -> None:
    figures = "  ".join(
        f"{figure.label} {number(run.figures[figure])}" for figure in scenario.figures if figure in run.figures
    )
    print(f"{scenario.name:10} {server.name:9} {figures if run.verified else 'FAILED: ' + run.error}", file=sys.stderr)


def _measure_all(scenarios: Sequence[Scenario], servers: Sequence[Server], runs: int, pin: bool) -> Results:
    """A, B, C, A, B, C …: what the machine does meanwhile hits all alike."""
    results: Results = {}
    for scenario in scenarios:
        found = results[scenario.name] = {server.name: [] for server in servers}
        for _ in range(runs):
            for server in servers:
                run = measure(server, scenario.arguments, pin)
                found[server.name].append(run)
                _progress(scenario, server, run)
    return results


def _middle(results: Results) -> dict[str, Medians]:
    return {
        scenario: {server: medians(runs) for server, runs in by_server.items()}
        for scenario, by_server in results.items()
    }


def _failures(results: Results) -> list[str]:
    return [
        f"{scenario} on {server}: {run.error}"
        for scenario, by_server in results.items()
        for server, runs in by_server.items()
        for run in runs
        if not run.verified
    ]


def _missed(middle: Mapping[str, Medians]) -> bool:
    return any(
        target.judge(middle[target.scenario]) is not Verdict.PASS for target in TARGETS if target.scenario in middle
    )


def _print_table(middle: Mapping[str, Medians]) -> None:
    names = dict.fromkeys(server for medians_of in middle.values() for server in medians_of)
    print(comparison(middle, list(names)))


def _compare(arguments: argparse.Namespace) -> int:
    scenarios = _scenarios(arguments.only)
    servers = _servers(arguments.servers, arguments.culture_command)
    raise_file_limit()
    build()
    results = _measure_all(scenarios, servers, arguments.runs, arguments.pin)
    if arguments.json:
        text = json.dumps(record(results, servers, arguments.pin), indent=1)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    middle = _middle(results)
    _print_table(middle)
    failures = _failures(results)
    for failure in failures:
        print(f"not verified: {failure}", file=sys.stderr)
    return 1 if failures or (arguments.check and _missed(middle)) else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table; 1 when a run was not verified or, with ``--check``, a target missed."""
    # Without this a terminated script would leave its servers behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments = _arguments(argv)
    if arguments.table:
        _print_table(read_medians(arguments.table))
        return 0
    return _compare(arguments)


if __name__ == "__main__":
    sys.exit(main())
