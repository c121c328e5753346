"""kill -9 of the orchestrator between every two steps: the next start finishes what was begun, once."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path

import pytest

from culture.clients.shared import pidfile
from culture.config import paths
from culture.orchestrator.journal.state import TaskStage, TeamState
from culture.orchestrator.journal.store import read_state
from culture.server.ircd import IRCd
from tests.orchestrator.conftest import git_in
from tests.orchestrator.crew import COMMIT, HANDS_OVER, IS_FULL, MANAGER, TAKES_OVER, end_members, team_yaml
from tests.support.client import registered
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
NEVER = 10_000
# All of them are in tests/proof, as they take a while. Here, of a task: intended, before the daemon, after the report.
TASK_STEPS = (1, 5, 11)
STEPS = (1, 8)
WORKER_STEPS = (12,)
WORKER = [
    {
        "when": r"(?P<by>\S+) wants this of you, in #work-(?P<id>\S+):",
        "steps": [
            {"run": "echo hello >> {id}.txt && git add . && " + COMMIT + " -m hello"},
            {"send": {"to": "#work-{id}", "text": "@{by} it is written"}},
            {"say": "done"},
        ],
    }
]
SOLO = [
    {
        "when": r"Your task is (?P<id>\S+), from",
        "steps": [
            {"run": "echo hello >> {id}.txt && git add . && " + COMMIT + " -m hello"},
            {"send": {"to": "#standup-demo", "text": "TASK: {id} done: hello is there"}},
            {"say": "reported"},
        ],
    }
]


@pytest.fixture(autouse=True)
async def ended(home: Path) -> AsyncIterator[None]:
    yield
    await end_members(home)


@asynccontextmanager
async def orchestrator(dies_at: int = NEVER, begin: str = "task") -> AsyncIterator[asyncio.subprocess.Process]:
    """A real `culture team up`."""
    with (paths.home() / "up.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.orchestrator.dying",
            str(dies_at),
            cwd=ROOT,
            env={**os.environ, "DIE_FROM": begin},
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def state() -> TeamState:
    return read_state(paths.team_dir("demo"))


def is_over(id: str) -> bool:
    now = state()
    return id in now.tasks and now.tasks[id].cleaned and f"over {id}" in now.announced and not now.team_of(id)


async def killed_at(ircd: IRCd, steps: Iterable[int], begin: str = "task") -> int:
    """One task after the other, each with a kill at one of these entries, until none is left to come."""
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#standup-demo")
        for number, step in enumerate(chain(steps, [NEVER]), 1):
            async with orchestrator(step, begin) as process:
                await until(lambda: bool(state().em and state().em.hired))  # type: ignore[union-attr]
                ori.send(f"PRIVMSG #standup-demo :TASK: number {number}")
                await until(lambda p=process, id=f"demo-{number}": p.returncode is not None or is_over(id))  # type: ignore[misc]
                if process.returncode is None:
                    await until(lambda most=number: all(is_over(f"demo-{each}") for each in range(1, most + 1)))  # type: ignore[misc]
                    return number
    raise AssertionError


def check(project: Path, tasks: int, members_each: int) -> None:
    """Every task was done, once, by so many, and nothing is left of it but its branch."""
    now = state()
    assert len(now.tasks) == tasks
    assert sorted(task.text for task in now.tasks.values()) == sorted(f"number {each}" for each in range(1, tasks + 1))
    for id, task in now.tasks.items():
        assert task.stage is TaskStage.DONE
        assert git_in(project, "log", "--format=%s", f"main..task/{id}").split() == ["hello"]
        assert not (project / ".worktrees" / f"agent-task-{id}").exists()
    assert len(now.names) == len(set(now.names)) == 1 + members_each * tasks
    assert set(pidfile.all_running()) == {"spark-Harper"}
    assert git_in(project, "status", "--porcelain") == ""


@pytest.mark.timeout(240)
@pytest.mark.requirement("O24", "M12")
@pytest.mark.fault("I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8")
async def test_after_kill_9_at_any_step_a_task_is_done_once_and_nothing_is_lost(
    ircd: IRCd, home: Path, project: Path
) -> None:
    team_yaml(home, project, ircd.port, {"manager": SOLO}, limits={"members": 99, "tasks": 99})
    tasks = await killed_at(ircd, TASK_STEPS)
    check(project, tasks, members_each=1)


@pytest.mark.timeout(240)
@pytest.mark.fault("I5", "I6", "I7")
async def test_after_kill_9_while_a_worker_is_hired_there_is_one_worker_and_one_commit(
    ircd: IRCd, home: Path, project: Path
) -> None:
    rules = {"manager": MANAGER, "implementer": WORKER}
    team_yaml(home, project, ircd.port, rules, limits={"members": 99, "tasks": 99})
    tasks = await killed_at(ircd, WORKER_STEPS)
    check(project, tasks, members_each=2)


@pytest.mark.timeout(240)
@pytest.mark.requirement("O16", "O17")
@pytest.mark.fault("I20")
async def test_after_kill_9_at_any_step_of_a_shift_change_there_is_one_successor(
    ircd: IRCd, home: Path, project: Path
) -> None:
    rules = [HANDS_OVER, TAKES_OVER, IS_FULL]
    team_yaml(home, project, ircd.port, {"manager": rules}, limits={"members": 99, "tasks": 99})
    tasks = await killed_at(ircd, STEPS, "shift")
    check(project, tasks, members_each=2)
    for id in state().tasks:
        # The hand-off that its predecessor wrote was read by the one who followed.
        assert git_in(project, "show", f"task/{id}:{id}.txt").startswith("notes by spark-")
