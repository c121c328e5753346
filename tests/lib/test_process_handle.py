"""Processes by a handle."""

import signal
import subprocess
from collections.abc import Iterator

import pytest

from culture.lib.process import handle as process
from tests.support.waiting import PATIENCE


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as made:
        yield made
        made.kill()


def test_it_is_told_and_waited_for(child: subprocess.Popen[bytes]) -> None:
    assert process.end(child.pid, lambda: True, PATIENCE) is True
    assert child.wait(PATIENCE) == -signal.SIGTERM


def test_one_that_is_another_by_now_is_left_alone(child: subprocess.Popen[bytes]) -> None:
    assert process.end(child.pid, lambda: False, PATIENCE) is None
    with process.pinned(child.pid) as handle:
        assert handle is not None and not process.is_gone(handle, 0)


def test_one_that_is_gone_is_none(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait(PATIENCE)
    assert process.end(child.pid, lambda: True, PATIENCE) is None


def test_one_that_ended_and_was_not_waited_for_is_gone(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    with process.pinned(child.pid) as handle:
        assert handle is not None and process.is_gone(handle, PATIENCE)
    assert process.end(child.pid, lambda: True, PATIENCE) is True
