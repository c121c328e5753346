"""``make proof NAME=simulation``: 20,000 seeds that no run before has used, over 2, 3 and 5 servers.

The figures add up: the record of the last run tells which seeds were run on which commit, and a run begins behind them.
A run that is interrupted is continued by the next one, as long as the commit is the same: what it has done is noted in
``build/simulation.json`` after each part.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.simulation.__main__ import replay_line
from tests.simulation.ordering import number_objects
from tests.simulation.runner import run_seeds
from tests.simulation.universe import Setup
from tools.proof import EVIDENCE
from tools.rows import ROOT

SEEDS = 20_000
SHARES = {2: 0.7, 3: 0.25, 5: 0.05}
"""Which part of the seeds runs with how many servers."""
_PART = 250
_FIRST = 1_000
"""Seeds below this one are those of ``make test``."""
_PROGRESS = ROOT / "build" / "simulation.json"

Range = dict[str, Any]


def main() -> int:
    """Run the seeds; return 1 if any was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.proof", description=__doc__)
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--seeds", type=int, default=int(os.environ.get("SIMULATION_SEEDS", SEEDS)))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    number_objects()
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    before = earlier(EVIDENCE / "simulation.json")
    ranges = resumed(_PROGRESS, commit.stdout.strip())
    for servers, share in SHARES.items():
        wanted = round(options.seeds * share) - sum(each["count"] for each in ranges if each["servers"] == servers)
        while wanted > 0:
            count = min(wanted, _PART)
            ranges.append(_run(servers, following([*before, *ranges], servers), count, options.jobs))
            ranges[-1]["commit"] = commit.stdout.strip()
            wanted -= count
            _PROGRESS.parent.mkdir(exist_ok=True)
            _PROGRESS.write_text(json.dumps(ranges), encoding="utf-8")
    figures = summary(before, ranges)
    print(json.dumps(figures, indent=2))
    if options.json is not None:
        options.json.write_text(json.dumps(figures), encoding="utf-8")
    _PROGRESS.unlink(missing_ok=True)
    return 1 if any(each["wrong"] for each in ranges) else 0


def earlier(record: Path) -> list[Range]:
    """Return the ranges of all runs before this one."""
    if not record.exists():
        return []
    found: list[Range] = json.loads(record.read_text(encoding="utf-8"))["figures"].get("runs", [])
    return found


def resumed(progress: Path, commit: str) -> list[Range]:
    """Return the ranges of a run of this commit that was interrupted."""
    if not progress.exists():
        return []
    found: list[Range] = json.loads(progress.read_text(encoding="utf-8"))
    return [each for each in found if each["commit"] == commit]


def following(ranges: list[Range], servers: int) -> int:
    """Return the first seed behind all that were run with so many servers."""
    return max((each["first"] + each["count"] for each in ranges if each["servers"] == servers), default=_FIRST)


def summary(before: list[Range], ranges: list[Range]) -> dict[str, Any]:
    """Return the figures of all runs: the ranges of each commit joined, and how many seeds they are."""
    runs = list(before)
    for each in ranges:
        last = runs[-1] if runs else None
        is_next = last is not None and (last["commit"], last["servers"]) == (each["commit"], each["servers"])
        if last is not None and is_next and last["first"] + last["count"] == each["first"]:
            added = {key: last[key] + each[key] for key in ("count", "virtual_hours", "receipted", "wrong")}
            minutes = round(last["minutes"] + each["minutes"], 1)
            runs[-1] = {**last, **added, "minutes": minutes, "load": max(last["load"], each["load"])}
        else:
            runs.append(each)
    for run in runs:
        run["virtual_hours"] = round(run["virtual_hours"], 1)
    seeds = sum(each["count"] for each in ranges)
    return {"seeds": seeds, "seeds_in_all_runs": sum(each["count"] for each in runs), "runs": runs}


def _run(servers: int, first: int, count: int, jobs: int) -> Range:
    began, virtual, receipted, wrong = time.monotonic(), 0.0, 0, []
    setup = Setup(servers)
    for outcome in run_seeds(range(first, first + count), setup, jobs):
        virtual += outcome.virtual
        receipted += outcome.figures.get("receipted", 0)
        if outcome.wrong:
            wrong.append(replay_line(outcome.seed, setup))
            print(f"{wrong[-1]}: {outcome.wrong[0].rule}: {outcome.wrong[0].text[:300]}", flush=True)
    minutes = (time.monotonic() - began) / 60
    print(f"{servers} servers, seeds {first} to {first + count - 1}: {len(wrong)} wrong, {minutes:.1f} min", flush=True)
    return {
        "servers": servers,
        "first": first,
        "count": count,
        "minutes": round(minutes, 1),
        "load": round(os.getloadavg()[0], 1),
        "virtual_hours": virtual / 3600,
        "receipted": receipted,
        "wrong": wrong,
    }


if __name__ == "__main__":
    sys.exit(main())
