"""``make proof NAME=teamkills``: kill -9 at every step of a task with a worker, and of a shift change."""

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.orchestrator.conftest import home, ircd, project
from tests.orchestrator.crew import HANDS_OVER, IS_FULL, MANAGER, TAKES_OVER, end_members, team_yaml
from tests.orchestrator.test_killed import WORKER, check, killed_at

__all__ = ["home", "ircd", "project"]
MANY = {"members": 999, "tasks": 999}


@pytest.fixture(autouse=True)
async def ended(home: Path) -> AsyncIterator[None]:
    yield
    await end_members(home)


@pytest.mark.timeout(0)
async def test_at_every_step_of_a_task_with_a_worker(ircd: IRCd, home: Path, project: Path) -> None:
    team_yaml(home, project, ircd.port, {"manager": MANAGER, "implementer": WORKER}, limits=MANY)
    tasks = await killed_at(ircd, count(1))
    assert tasks > 20
    check(project, tasks, members_each=2)


@pytest.mark.timeout(0)
async def test_at_every_step_of_a_shift_change(ircd: IRCd, home: Path, project: Path) -> None:
    team_yaml(home, project, ircd.port, {"manager": [HANDS_OVER, TAKES_OVER, IS_FULL]}, limits=MANY)
    tasks = await killed_at(ircd, count(1), "shift")
    assert tasks > 10
    check(project, tasks, members_each=2)
