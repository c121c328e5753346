"""What the team refuses or notices is a prompt to the member who has to act; tasks beyond the limit wait their turn."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from culture.config import paths
from culture.orchestrator.journal.state import TaskStage, TeamState
from culture.orchestrator.journal.store import read_state
from culture.orchestrator.tasks.task_checks import STANDSTILL
from culture.orchestrator.team import Team
from culture.server.ircd import IRCd
from tests.orchestrator.crew import at_work, end_members, heard, prompts_of, team_yaml
from tests.orchestrator.test_killed import orchestrator
from tests.support.client import registered
from tests.support.waiting import until

SILENT = [{"when": "Your task is", "steps": [{"say": "ok"}]}]


@pytest.fixture(autouse=True)
async def ended(home: Path) -> AsyncIterator[None]:
    yield
    await end_members(home)


async def rests(team: Team, nick: str) -> bool:
    status = await team.context.daemons.call(nick, "status")
    return status["state"] == "idle" and not status["unread"]


def known() -> TeamState:
    return read_state(paths.team_dir("demo"))


@pytest.mark.requirement("O24")
@pytest.mark.fault("I1")
async def test_tasks_over_the_limit_queue_and_begin_in_order_after_kill_9_too(
    ircd: IRCd, home: Path, project: Path
) -> None:
    gives = [{"when": "says: please", "steps": [{"send": {"to": "#standup-demo", "text": "TASK: the third"}}]}]
    team_yaml(home, project, ircd.port, {"manager": SILENT, "em": gives}, limits={"tasks": 1}, heartbeat=1)
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#standup-demo,#project-demo")
        async with orchestrator() as process:
            await until(lambda: bool((em := known().em) and em.hired))
            ori.send("PRIVMSG #standup-demo :TASK: the first")
            ori.send("PRIVMSG #standup-demo :TASK: the second")
            told = await heard(ori, "#standup-demo", "[demo-2] waits its turn")
            assert "1 tasks are under way, and limits.tasks allows no more" in told
            ori.send("PRIVMSG #project-demo :please")
            # The EM gave it out, and a notice wakes nobody: it has a prompt that names the task.
            order = "[TEAM] [demo-3] waits its turn: 1 tasks are under way"
            await until(lambda: any(order in prompt and "the third" in prompt for prompt in prompts_of(project)))
            assert known().tasks["demo-2"].stage is known().tasks["demo-3"].stage is TaskStage.QUEUED
            assert not known().tasks["demo-2"].worktree
            process.kill()
            await process.wait()
        async with orchestrator():
            for number in (1, 2):
                await until(lambda id=f"demo-{number}": f"begun {id}" in known().announced)  # type: ignore[misc]
                assert known().tasks["demo-3"].stage is TaskStage.QUEUED
                ori.send(f"PRIVMSG #standup-demo :TASK: demo-{number} failed: never mind")
            await until(lambda: "begun demo-3" in known().announced)
            assert [task.stage for task in known().tasks.values()] == [
                TaskStage.FAILED,
                TaskStage.FAILED,
                TaskStage.WORKING,
            ]
            await until(lambda: not known().team_of("demo-2"))
    assert sum("waits its turn" in prompt for prompt in prompts_of(project)) == 2


async def test_a_queued_task_that_nobody_wants_any_more_is_never_begun(ircd: IRCd, home: Path, project: Path) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": SILENT}, limits={"tasks": 1})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await ori.join("#standup-demo")
        ori.send("PRIVMSG #standup-demo :TASK: the first")
        ori.send("PRIVMSG #standup-demo :TASK: the second")
        await until(lambda: "queued demo-2" in team.context.store.state.announced)
        ori.send("PRIVMSG #standup-demo :TASK: demo-2 failed: not wanted")
        assert "It was not begun" in await heard(ori, "#standup-demo", "[demo-2] failed: not wanted")
        await team.context.jobs.settle()
        ori.send("PRIVMSG #standup-demo :TASK: demo-1 failed: nor this")
        await heard(ori, "#standup-demo", "[demo-1] failed")
        await team.heartbeat.beat()
        await team.context.jobs.settle()
        task = team.context.store.state.tasks["demo-2"]
        assert (task.stage, task.cleaned, task.branch, task.manager) == (TaskStage.FAILED, True, "", None)


@pytest.mark.requirement("O30")
async def test_a_member_whose_line_is_refused_or_brings_nobody_is_prompted(
    ircd: IRCd, home: Path, project: Path
) -> None:
    rules = {
        "em": [{"when": "says: please", "steps": [{"send": {"to": "#standup-demo", "text": "TASK: @Ghost look"}}]}],
        "manager": [
            {
                "when": "Your task is",
                "steps": [{"send": {"to": "#work-demo-1", "text": "TASK: implementer: write hello.txt"}}],
            }
        ],
    }
    config = team_yaml(home, project, ircd.port, rules, limits={"members": 2})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await ori.join("#standup-demo,#project-demo")
        ori.send("PRIVMSG #project-demo :please")
        refused = (
            '[TEAM] Nothing came of your line in #standup-demo: nobody in the team is called Ghost. You wrote: "TASK:'
        )
        await until(lambda: any(refused in prompt for prompt in prompts_of(project)))
        ori.send("PRIVMSG #standup-demo :TASK: say hello")
        await until(lambda: "begun demo-1" in team.context.store.state.announced)
        worktree = Path(team.context.store.state.tasks["demo-1"].worktree)
        nobody = "[TEAM] [demo-1] Nobody was hired as implementer: the team has 2 members"
        await until(lambda: any(nobody in prompt and "write hello.txt" in prompt for prompt in prompts_of(worktree)))
        await team.context.jobs.settle()
        await team.heartbeat.beat()
        assert sum(nobody in prompt for prompt in prompts_of(worktree)) == 1


async def test_standstill_is_a_prompt_to_the_manager_then_to_the_em_then_to_nobody(
    ircd: IRCd, home: Path, project: Path
) -> None:
    now = [0.0]
    config = team_yaml(home, project, ircd.port, {"manager": SILENT})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config, clock=lambda: now[0]) as team:
        await ori.join("#standup-demo")
        ori.send("PRIVMSG #standup-demo :TASK: say hello")
        await until(lambda: "begun demo-1" in team.context.store.state.announced)
        worktree = Path(team.context.store.state.tasks["demo-1"].worktree)
        still = "[TEAM] [demo-1] nobody has had anything to do for 10 minutes"
        counts = []
        for step in range(8):
            now[0] = step * (STANDSTILL / 2 + 1)
            await team.heartbeat.beat()
            for nick in ("spark-Ramona", "spark-Harper"):
                await until(partial(rests, team, nick))
            counts.append(tuple(sum(still in prompt for prompt in prompts_of(each)) for each in (worktree, project)))
        assert counts[0] == (0, 0) and (1, 0) in counts and counts[-1] == (1, 1)
        assert counts == sorted(counts)
