"""Real servers in simulated worlds: some seeds of each size, and replays of a seed."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.simulation.faults import KINDS
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.workload import ACTS
from tools.rows import ROOT

# Sized by measurement, so that all tests of this package take two minutes of one processor, on two cores one: a seed of
# two servers takes half a second, one of three a second and a quarter.
_SEEDS = [(2, first, 12) for first in range(0, 72, 12)] + [(3, first, 8) for first in range(12, 36, 8)]


_FAULTS = ("at-commit", "clients", "jump", "kill", "one-way", "power", "reset", "stop", "sync")
_OFTEN = [*(f"fault {kind}" for kind in _FAULTS), *(f"act {verb}" for verb in ("JOIN", "MODE", "PRIVMSG"))]
"""What occurs in any eight seeds; of faults only what had an effect is counted, as a cut that held something back."""
_OCCURS = {
    "power-loss-after-receipt": ["fault cut", "fault power"],
    "full-disk": ["fault full"],
    "each-act": [f"act {verb}" for verb in ACTS],
}
"""What occurs in known courses of events; in seeds it is rarer, and after a change other seeds would be without it."""


def _run(*words: str, **environment: str) -> tuple[int, list[dict[str, Any]], str]:
    """Run ``python -m tests.simulation``; return its status, a dictionary for each seed, and its output."""
    command = [sys.executable, "-m", "tests.simulation", "--json", *words]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, lines, done.stdout + done.stderr


@pytest.mark.parametrize(("servers", "first", "count"), _SEEDS)
def test_nothing_is_lost_or_doubled_whatever_goes_wrong(servers: int, first: int, count: int) -> None:
    status, seeds, output = _run("--servers", str(servers), "--seed", str(first), "--count", str(count))
    assert status == 0, output
    assert len(seeds) == count
    assert sum(each["receipted"] for each in seeds) > 10 * count, "hardly anything was said"
    assert not [name for name in _OFTEN if not sum(each[name] for each in seeds)], "something never occurred"


def test_all_servers_show_the_same_ranks_after_a_split() -> None:
    status, _, output = _run("--servers", "3", "--seed", "8", "--faults", "4,10,11")
    assert status == 0, output


@pytest.mark.parametrize("first", [0, 2])
def test_a_peer_that_lies_harms_nobody(first: int) -> None:
    status, seeds, output = _run("--hostile", "--servers", "3", "--seed", str(first), "--count", "2")
    assert status == 0, output
    assert sum(each["attacks"] for each in seeds) > 50, "hardly any attack was made"


def test_private_messages_arrive_that_went_by_a_server_without_a_say() -> None:
    status, _, output = _run("--servers", "3", "--seed", "2029", "--faults", "2,3")
    assert status == 0, output


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_known_course_of_events_ends_well(scenario: str) -> None:
    status, seeds, output = _run("--scenario", scenario)
    assert status == 0, output
    assert len(seeds) == 1
    assert not [name for name in _OCCURS.get(scenario, []) if not seeds[0][name]], "something never occurred"


def test_every_fault_and_act_is_one_that_must_occur() -> None:
    every = {f"fault {kind}" for kind in KINDS} | {f"act {verb}" for verb in ACTS}
    assert every == set(_OFTEN).union(*_OCCURS.values())


def test_a_seed_gives_the_same_bytes_in_each_run() -> None:
    words = ("--servers", "3", "--seed", "0", "--count", "4")
    runs = [_run(*words, PYTHONHASHSEED=seed, TZ=zone) for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))]
    for status, _, output in runs:
        assert status == 0, output
    digests = [[each["digest"] for each in seeds] for _, seeds, _ in runs]
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == 4, "different seeds gave the same run"
