"""What keeping everything costs: fan100 with the history on and off, in turn, and every message found on disk."""

import argparse
import json
import os
import shlex
import signal
import sqlite3
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from bench.load import build, generate, raise_file_limit
from bench.servers import CULTURE_COMMAND, HERE, Running, Server, running
from bench.table import markdown, number

SENDERS, MESSAGES, MEMBERS = 10, 3_000, 100
LOAD = f"-s fanout -n {MEMBERS} -S {SENDERS} -w 8 -b 64 -m {MESSAGES}"
PATIENCE = 60.0
LEAST_STORED = 15_000
MOST_CPU = 2.0
_NUMBER = slice(7, 15)  # where the generator writes which of a sender's messages it is


@dataclass(frozen=True)
class Run:
    """One run; ``stored`` and ``verified`` concern the history alone."""

    history: bool
    deliveries_per_s: float
    cpu_s_per_million: float
    p50_us: float
    p99_us: float
    stored_per_s: float = 0.0
    verified: int = 0


def server(config: str) -> Server:
    """Ours with one of the two configurations."""
    words = shlex.split(CULTURE_COMMAND)

    def command(port: int, run: Path) -> list[str]:
        settings = HERE / "peers" / config
        return [word.format(python=sys.executable, port=port, run=run, config=settings) for word in words]

    return Server("culture", command, (sys.executable, "-m", "culture", "--version"), 256, "spark-")


def measure(history: bool) -> Run:
    """Run the load once; with the history, wait until all of it is on disk and look through it."""
    ours = server("culture-history.yaml" if history else "culture.yaml")
    with running(ours) as target:
        before = _cpu(target)
        answer = generate(ours, target, LOAD)
        said = json.loads(answer.stdout)
        if answer.returncode:
            raise SystemExit(f"not every message arrived: {answer.stdout}")
        stored, verified = 0.0, 0
        if history:
            database = target.folder / "history" / "history.db"
            waited = _await_stored(database)
            stored = SENDERS * MESSAGES / (said["run_s"] + waited)
            verified = _verify(database)
        # The registering and joining is part of it in both cases.
        cpu = _cpu(target) - before
    return Run(
        history,
        said["deliv_per_s"],
        cpu / said["deliv"] * 1e6,
        said["p50_us"],
        said["p99_us"],
        stored,
        verified,
    )


def _cpu(target: Running) -> float:
    fields = Path(f"/proc/{target.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _await_stored(database: Path) -> float:
    """How long it took from the last delivery until the last message was on disk."""
    began = time.monotonic()
    connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
    while True:
        waited = time.monotonic() - began
        (count,) = connection.execute("SELECT count(*) FROM entries WHERE sort = 0").fetchone()
        if count >= SENDERS * MESSAGES:
            return waited
        if waited > PATIENCE:
            raise SystemExit(f"only {count} messages are on disk after {PATIENCE:g} s")
        time.sleep(0.01)


def _verify(database: Path) -> int:
    """Each message is there once, and those of a sender in their order; how many there are."""
    connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
    by_source: dict[str, list[int]] = {}
    for source, text in connection.execute("SELECT source, text FROM entries WHERE sort = 0 ORDER BY position"):
        by_source.setdefault(source, []).append(int(text[_NUMBER], 16))
    if len(by_source) != SENDERS:
        raise SystemExit(f"{len(by_source)} senders in the history, not {SENDERS}")
    for source, found in by_source.items():
        if found != sorted(found) or len(set(found)) != MESSAGES or len(found) != MESSAGES:
            raise SystemExit(f"what {source} said is not there once and in order")
    return sum(map(len, by_source.values()))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure both in turn, print the medians and the ratio; 1 where it is missed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(prog="python -m bench.history", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args(argv)
    raise_file_limit()
    build()
    runs = [measure(history) for _ in range(arguments.runs) for history in (False, True)]
    off, on = ([run for run in runs if run.history is wanted] for wanted in (False, True))
    cpu = [median(run.cpu_s_per_million for run in some) for some in (off, on)]
    stored = median(run.stored_per_s for run in on)
    rows = [["figure", "history off", "history on"]]
    for name in ("deliveries_per_s", "cpu_s_per_million", "p50_us", "p99_us", "stored_per_s"):
        rows.append([name, *(number(median(getattr(run, name) for run in some)) for some in (off, on))])
    print(markdown(rows))
    print(
        f"CPU: {cpu[1] / cpu[0]:.2f} times (at most {MOST_CPU:g}); {stored:,.0f} stored/s (at least {LEAST_STORED:,})"
    )
    if arguments.json:
        figures = {
            "load": LOAD,
            "cpu_ratio": round(cpu[1] / cpu[0], 3),
            "stored_per_s": round(stored),
            "verified_per_run": on[0].verified,
            "runs": [asdict(run) for run in runs],
        }
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if stored >= LEAST_STORED and cpu[1] <= MOST_CPU * cpu[0] else 1


if __name__ == "__main__":
    sys.exit(main())
