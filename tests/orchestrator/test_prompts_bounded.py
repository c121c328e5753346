"""Prompts of the orchestrator end by themselves: no member is prompted for ever, and one broken task stops no look."""

import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from culture.orchestrator.tasks.task_checks import STANDSTILL
from culture.server.ircd import IRCd
from tests.orchestrator.crew import at_work, end_members, heard, prompts_of, team_yaml
from tests.orchestrator.test_prompts_to_act import SILENT, rests
from tests.support.client import registered
from tests.support.waiting import until

WRITES_AGAIN = [{"send": {"to": "#standup-demo", "text": "TASK: @Ghost look"}}]


@pytest.fixture(autouse=True)
async def ended(home: Path) -> AsyncIterator[None]:
    yield
    await end_members(home)


async def test_a_member_that_writes_a_refused_line_again_and_again_is_not_prompted_for_ever(
    ircd: IRCd, home: Path, project: Path
) -> None:
    rules = [{"when": "says: please", "steps": WRITES_AGAIN}, {"when": "Nothing came of", "steps": WRITES_AGAIN}]
    config = team_yaml(home, project, ircd.port, {"em": rules})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await ori.join("#standup-demo,#project-demo")
        ori.send("PRIVMSG #project-demo :please")
        for _ in range(6):
            await heard(ori, "#standup-demo", "nobody in the team is called Ghost")
        await team.context.jobs.settle()
        await until(partial(rests, team, "spark-Harper"))
        refused = [prompt for prompt in prompts_of(project) if "Nothing came of" in prompt]
        assert len(refused) == 5
        assert "You are not prompted about further ones for an hour" in refused[-1]


async def test_a_standstill_whose_worktree_is_gone_keeps_no_other_task_from_being_looked_at(
    ircd: IRCd, home: Path, project: Path
) -> None:
    now = [0.0]
    config = team_yaml(home, project, ircd.port, {"manager": SILENT})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config, clock=lambda: now[0]) as team:
        await ori.join("#standup-demo")
        for number, text in ((1, "one"), (2, "two")):
            ori.send(f"PRIVMSG #standup-demo :TASK: say {text}")
            await until(lambda id=f"demo-{number}": f"begun {id}" in team.context.store.state.announced)  # type: ignore[misc]
        first, second = (Path(team.context.store.state.tasks[f"demo-{number}"].worktree) for number in (1, 2))
        for nick in ("spark-Ramona", "spark-Harper"):
            await until(partial(rests, team, nick))
        await team.heartbeat.beat()
        shutil.rmtree(first)
        now[0] = STANDSTILL + 1
        await team.heartbeat.beat()
        await team.heartbeat.beat()
        assert any("[demo-2] nobody has had anything to do" in prompt for prompt in prompts_of(second))
