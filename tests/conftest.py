"""What holds for every test: known markers, and no silent skip where CI is set."""

import gc
import json
import os
import resource
import signal
import subprocess
from collections.abc import Generator

import _pytest.tmpdir
import pytest
from hypothesis import HealthCheck, settings

from tools.requirements import LAST_RUN, check_markers, name_of
from tools.rows import ROOT, SourceError

# How long an example takes says something of the machine, not of the code. The examples are the same each time:
# `make proof NAME=properties` looks for others.
settings.register_profile(
    "culture",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not os.environ.get("CULTURE_PROOF"),
)
settings.load_profile("culture")

# Run by `make proof` and `make irctest`, not by `make test`.
collect_ignore = ["irctest", *([] if os.environ.get("CULTURE_PROOF") else ["proof"])]


# Where tests take long, those come first, so that no worker is left alone with them in the end.
_LONG = (
    "test_four_makers",
    "orchestrator",
    "authority",
    "examples",
    "browser",
    "cli",
    "claude",
    "acp",
    "copilot",
    "deploy",
    "bridge",
    "test_conversation_by_backend",
    "test_end_by_backend",
    "federation",
    "realclients",
    "history",
    "wiki",
    "web",
)
# Where none takes long, those come last: what is left fits on every worker.
_SHORT = ("ledger_views", "config", "protocol", "lib")


def _begins(item: pytest.Item) -> int:
    """How late a test is begun."""
    parts = item.path.with_suffix("").parts
    if any(part in parts for part in _SHORT):
        return len(_LONG) + 1
    return next((place for place, part in enumerate(_LONG) if part in parts), len(_LONG))


# The path of a Unix socket has 107 bytes at most, and many are in folders of tests: the login name, which is a part of
# those folders' paths, may be a long one.
_pytest.tmpdir.get_user = lambda: f"{os.getuid():x}"


def pytest_configure() -> None:
    """Interrupt programs of tests as in a terminal, also where a shell runs us in its background; use all descriptors.

    An ordinary user may have 1,024 and raise that: tests hold the clients of servers that do so themselves.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: looking for garbage meanwhile, or among it later, would find none."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_begins)
    try:
        check_markers(items)
    except SourceError as wrong:
        raise pytest.UsageError(str(wrong)) from None


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """A skip in CI would hide that something was not tried."""
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _forbid_skip(report)
    return report


class _Outcomes:
    """Tests of this run by outcome, without their parameters."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.others: set[str] = set()


_outcomes = _Outcomes()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how a test ended; where workers run the tests, their reports come here as well."""
    if report.when == "call" and report.passed:
        _outcomes.passed.add(name_of(report.nodeid))
    elif not report.passed:
        _outcomes.others.add(name_of(report.nodeid))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave the outcome of a full run for `make requirements`."""
    if os.environ.get("PYTEST_XDIST_WORKER") or os.environ.get("CULTURE_PROOF"):
        return
    ran = {test.partition("::")[0] for test in _outcomes.passed | _outcomes.others}
    files = {path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    if {file for file in files if file.partition("/")[0] not in ("proof", "irctest")} <= ran:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        LAST_RUN.parent.mkdir(exist_ok=True)
        passed = sorted(_outcomes.passed - _outcomes.others)
        LAST_RUN.write_text(json.dumps({"commit": head.stdout.strip(), "passed": passed}), encoding="utf-8")
