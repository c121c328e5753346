"""Budgets of the team, a task and a role hold within a turn: nobody has to speak, and no heartbeat has to come."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from culture.config import paths
from culture.config.load import load_team
from culture.server.ircd import IRCd
from tests.orchestrator.crew import at_work, end_members, heard, prompts_of, team_yaml
from tests.support.client import registered
from tests.support.waiting import until

WORKS = [
    {"when": "More may be", "steps": [{"say": "went on"}]},
    {
        "when": "Your task is",
        "steps": [
            {"usage": {"tokens": 500, "cost_usd": 0.3}},
            {"run": "echo a > a.txt && while ! test -e go; do sleep 0.02; done"},
            {"usage": {"tokens": 900, "cost_usd": 0.5}},
            {"run": "echo b > b.txt && until [ -e on ]; do sleep 0.02; done; echo more >> b.txt"},
            {"run": {"command": "sleep 50", "timeout": 60}},
            {"run": "echo c > c.txt"},
        ],
    },
]


@pytest.fixture(autouse=True)
async def ended(home: Path) -> AsyncIterator[None]:
    yield
    await end_members(home)


@pytest.mark.requirement("O19")
@pytest.mark.parametrize("whose", ["team", "task", "role"])
async def test_a_member_is_stopped_after_the_running_tool_call(
    ircd: IRCd, home: Path, project: Path, whose: str
) -> None:
    budget: dict[str, Any] = {} if whose == "role" else {"budget": {whose: {"usd": 0.4}}}
    config = team_yaml(home, project, ircd.port, {"manager": WORKS}, **budget)
    if whose == "role":
        file = paths.team_dir("demo") / "team.yaml"
        said = json.loads(file.read_text())
        said["roles"]["manager"]["options"]["budget"] = {"usd_total": 0.4}
        file.write_text(json.dumps(said))
        config = load_team(file).config
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await ori.join("#standup-demo,#work-demo-1")
        ori.send("PRIVMSG #standup-demo :TASK: say hello")
        await until(lambda: "begun demo-1" in team.context.store.state.announced)
        tree = Path(team.context.store.state.tasks["demo-1"].worktree)
        await until((tree / "a.txt").exists)
        # What the turn has used so far counts and is shown, though it goes on.
        await until(lambda: team.context.store.state.task_tokens("demo-1") == 500)
        assert round(team.context.store.state.usd(), 6) == 0.3
        (tree / "go").touch()
        room, told = ("#work-demo-1", "I am parked") if whose == "role" else ("#standup-demo", "has used $0.50")
        assert "[BUDGET]" in await heard(ori, room, told)
        (tree / "on").touch()

        async def rests() -> bool:
            return (await team.context.daemons.call("spark-Ramona", "status"))["state"] in ("paused", "parked")

        await until(rests)
        assert not (tree / "c.txt").exists()
        if whose == "role":
            # Its own budget stopped it: what it was given is kept until that allows more.
            order = team.context.store.state.members["spark-ramona"].order_key
            assert (await team.context.daemons.call("spark-Ramona", "prompt", key=order))["outcome"] == "waiting"
        else:
            assert (tree / "b.txt").read_text() == "b\nmore\n"
            assert team.context.store.state.parked == {"demo-1" if whose == "task" else "team"}
            await team.allow("demo-1" if whose == "task" else "team", usd=5.0)
            await until(lambda: "More may be" in prompts_of(tree)[-1])
