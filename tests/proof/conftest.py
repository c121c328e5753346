"""What came of the proofs that run a suite of tests for several programs: a figure for each program."""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

_SUITE = "test_agentprograms.py"
_results: defaultdict[str, dict[str, list[str]]] = defaultdict(lambda: {"passed": [], "failed": [], "limits": []})


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how a test of a program ended."""
    if _SUITE not in report.nodeid or (report.when != "call" and report.passed):
        return
    _, program, test = report.nodeid.split("::", 2)
    # A known limit of the program is expected to fail.
    kind = "limits" if hasattr(report, "wasxfail") and not report.passed else "passed" if report.passed else "failed"
    _results[program.removeprefix("Test")][kind].append(test)


def pytest_sessionfinish() -> None:
    """Write the figures: what passed is counted, what did not is named."""
    if _results and (path := os.environ.get("PROOF_FIGURES")):
        figures = {name: {**kinds, "passed": len(kinds["passed"])} for name, kinds in sorted(_results.items())}
        Path(path).write_text(json.dumps(figures), encoding="utf-8")
