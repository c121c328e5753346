"""Members of a team that only thank each other stop; work begins the count anew."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.orchestrator.team import Team
from culture.server.ircd import IRCd
from tests.orchestrator.crew import at_work, end_members, heard, team_yaml
from tests.support.client import Client, registered
from tests.support.waiting import until

_MOST = 10
"""Turns that one of two members may cause the other without work: half of the pair's."""


@pytest.fixture(autouse=True)
async def ended(home: Path) -> AsyncIterator[None]:
    yield
    await end_members(home)


def thanks(other: str) -> dict[str, object]:
    return {"when": "thanks", "steps": [{"send": {"to": "#standup-demo", "text": f"@spark-{other} thanks"}}]}


async def counted(ori: Client, team: Team) -> int:
    """How often somebody was thanked until one of them waits and nobody is at work."""
    await heard(ori, "#standup-demo", "I wait: this agent has woken me")

    async def rest() -> bool:
        states = [await team.context.daemons.call(f"spark-{name}", "status") for name in ("Harper", "Ramona")]
        return all(each["state"] == "idle" and not each["unread"] for each in states)

    await until(rest)
    await ori.sync()
    return sum("thanks" in line.params[1] for line in ori.seen if line.verb == "PRIVMSG")


@pytest.mark.requirement("O19")
async def test_thanks_end_and_go_on_when_one_has_worked(ircd: IRCd, home: Path, project: Path) -> None:
    polite = {"send": {"to": "#standup-demo", "text": "@spark-Harper thanks"}}
    works = {"when": "write it", "steps": [{"run": "echo a > a.txt"}, polite]}
    begins = {"when": "Your task is", "steps": [polite]}
    rules = {"em": [thanks("Ramona")], "manager": [works, begins, thanks("Harper")]}
    config = team_yaml(home, project, ircd.port, rules)
    async with registered(ircd.port, "spark-ori", "message-tags") as ori, at_work(config) as team:
        await ori.join("#standup-demo")
        ori.send("PRIVMSG #standup-demo :TASK: say hello")
        await until(lambda: "begun demo-1" in team.context.store.state.announced)
        first = await counted(ori, team)
        assert _MOST <= first <= 2 * _MOST + 2
        # Work of either gives the one who waits what waited, and both may talk as much again.
        ori.send("PRIVMSG #standup-demo :TASK: @Ramona write it")
        await until((Path(team.context.store.state.tasks["demo-1"].worktree) / "a.txt").exists)
        second = await counted(ori, team)
        assert first + _MOST <= second <= first + 2 * _MOST + 2
