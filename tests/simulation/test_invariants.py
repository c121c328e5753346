"""Each invariant fires: a small universe is judged as it was, and once for each way in which it is altered."""

import json
import subprocess
import sys

from tests.simulation.altered import READINGS, STATES
from tools.rows import ROOT


def test_each_alteration_of_a_quiet_universe_violates_its_rule() -> None:
    command = [sys.executable, "-m", "tests.simulation.altered"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [each["name"] for each in lines] == ["", *STATES, "", *READINGS], done.stdout + done.stderr
    for each in lines:
        if not each["name"]:
            assert each["wrong"] == [], "something is wrong without an alteration"
            continue
        rule, words = each["wanted"]
        assert any(found == rule and words in text for found, text in each["wrong"]), each
