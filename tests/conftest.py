"""What holds for every test: known markers, and no silent skip where CI is set."""

import os
from collections.abc import Generator

import pytest

from tools.requirements import check_markers
from tools.rows import SourceError

# Run by `make proof` and `make irctest`, not by `make test`.
collect_ignore = ["irctest", *([] if os.environ.get("CULTURE_PROOF") else ["proof"])]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
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
