"""Real daemons of agents in simulated worlds: a few short seeds, and the replay of one."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.simulation.agents.ledger import Ledger
from tools.rows import ROOT

# Sized by measurement: a seed of 300 virtual seconds takes one to two seconds of one core.
_SEEDS = (0, 2)


def _run(*words: str, **environment: str) -> tuple[int, list[dict[str, Any]], str]:
    """Run ``python -m tests.simulation.agents``; return its status, a dictionary for each seed, and its output."""
    command = [sys.executable, "-m", "tests.simulation.agents", "--json", "--agents", "4", "--seconds", "300", *words]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, lines, done.stdout + done.stderr


@pytest.mark.parametrize("first", _SEEDS)
def test_every_call_of_a_person_is_answered_once_whatever_is_killed(first: int) -> None:
    words = ("--every", "40", "--trouble", "25", "--seed", str(first), "--count", "2")
    status, seeds, output = _run(*words)
    assert status == 0, output
    assert len(seeds) == 2
    assert sum(each["prompts"] for each in seeds) > 20, "hardly any prompt was given"
    assert sum(each["kills"] for each in seeds) > 1, "no daemon was killed"


def test_a_seed_with_agents_gives_the_same_bytes_in_each_run() -> None:
    words = ("--seed", "1", "--count", "2", "--seconds", "120")
    runs = [_run(*words, PYTHONHASHSEED=seed, TZ=zone) for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))]
    digests = [[each["digest"] for each in seeds] for _, seeds, _ in runs]
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == 2, "different seeds gave the same run"


_FACTS = "  (class: human; account: p0; msgid: spark.1.{}; time: 2027-01-15T08:00:00Z{})"


def test_a_prompt_of_two_conversations_is_noticed() -> None:
    ledger = Ledger()
    heads = ("[IRC @mention in #x] <spark-p0> @spark-a0 one", "[IRC DM] <spark-p1> two")
    first, second = f"{heads[0]}\n{_FACTS.format(1, '')}", f"{heads[1]}\n{_FACTS.format(2, '; repeated: perhaps')}"
    apart = [ledger.give("spark-a0", 0, 0.0, prompt) for prompt in (first, second)]
    assert [(part.place, part.msgid, part.is_repeated) for given in apart for part in given.parts] == [
        ("#x", "spark.1.1", False),
        ("spark-p1", "spark.1.2", True),
    ]
    assert not ledger.wrong
    ledger.give("spark-a0", 0, 0.0, f"{first}\n{second}")
    assert [each.rule for each in ledger.wrong] == ["mixed"]
