"""A manager hears of the end of whoever works for it, whatever comes between."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.orchestrator.crew import at_work, end_members, heard, prompts_of, team_yaml
from tests.support.client import Client, registered
from tests.support.waiting import until

MANAGER = [{"when": "Your task is", "steps": [{"say": "planned"}]}]
WAITS = [
    {"when": "You take over", "steps": [{"say": "mended"}]},
    {"when": "wants this of you", "steps": [{"wait": {"until": "go", "timeout": 100}}, {"say": "written"}]},
]


@pytest.fixture(autouse=True)
async def ended(home: Path) -> AsyncIterator[None]:
    yield
    await end_members(home)


async def begun(ori: Client) -> None:
    await ori.join("#standup-demo,#work-demo-1")
    ori.send("PRIVMSG #standup-demo :TASK: say hello")
    await heard(ori, "#standup-demo", "Ramona takes it on")


async def test_who_was_mentioned_early_hears_of_the_end_all_the_same(ircd: IRCd, home: Path, project: Path) -> None:
    steps = [
        {"send": {"to": "#work-demo-1", "text": "@spark-Ramona I begin"}},
        {"send": {"to": "#work-demo-1", "text": "half of it is there"}},
        {"say": "all of it is there"},
    ]
    rules = {"manager": MANAGER, "implementer": [{"when": "wants this", "steps": steps}]}
    config = team_yaml(home, project, ircd.port, rules)
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await begun(ori)
        ori.send("PRIVMSG #work-demo-1 :TASK: implementer: write it")
        end = "[TEAM] Jules (implementer) has ended its turn in #work-demo-1: all of it is there"
        tree = Path(team.context.store.state.tasks["demo-1"].worktree)
        await until(lambda: end in prompts_of(tree))


async def test_whom_a_person_hired_and_who_followed_them_are_not_forgotten_by_the_next_orchestrator(
    ircd: IRCd, home: Path, project: Path
) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": MANAGER, "implementer": WAITS})
    async with registered(ircd.port, "spark-ori") as ori:
        async with at_work(config) as team:
            await begun(ori)
            tree = Path(team.context.store.state.tasks["demo-1"].worktree)
            jules = await team.spawn_agent("implementer", "demo-1", "write it")
            dinesh = await team.spawn_agent("implementer", "demo-1", "mend it")
            team.shift.begin(dinesh, "it is tired", asked=False)
            await until(lambda: not team.shift.is_open(dinesh.nick))
            new = next(each for each in team.context.store.state.team_of("demo-1") if "take over" in each.order)
            await until(lambda: f"finished {new.order_key}" in team.context.store.state.announced)
        async with at_work(config) as team:
            (tree / "go").touch()
            await until(lambda: f"finished {jules.order_key}" in team.context.store.state.announced)
            await team.context.jobs.settle()
            ends = [text for text in prompts_of(tree) if "has ended its turn" in text]
            assert [text.rpartition(": ")[2] for text in ends] == ["mended", "written"]
            # Nobody is told of the same end again.
            await team.heartbeat.beat()
            await team.context.jobs.settle()
            assert len([text for text in prompts_of(tree) if "has ended its turn" in text]) == 2


async def test_of_whoever_is_sent_home_the_manager_hears_too_and_its_successor_where_it_could_not(
    ircd: IRCd, home: Path, project: Path
) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": MANAGER, "implementer": WAITS})
    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await begun(ori)
        tree, ramona = (
            Path(team.context.store.state.tasks["demo-1"].worktree),
            team.context.store.state.member("spark-Ramona"),
        )
        assert ramona is not None
        jules = await team.spawn_agent("implementer", "demo-1", "write it")
        await team.context.daemons.stop(ramona.nick)
        await team.dismiss(jules)
        assert not any("is gone" in text for text in prompts_of(tree))
        team.shift.begin(ramona, "it is gone", asked=False)
        said = "[TEAM] Jules (implementer) is gone, and nobody comes instead: a person said so."
        await until(lambda: said in prompts_of(tree))
        assert team.context.store.state.tasks["demo-1"].manager not in (None, ramona.nick)
