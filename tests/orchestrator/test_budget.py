"""Budgets: when one is spent, and which members go on when one of several spent budgets is raised."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from culture.config.team import TeamBudget, TeamConfig
from culture.orchestrator.budget import TEAM, Budget
from culture.orchestrator.journal.state import Act
from culture.orchestrator.journal.store import TeamStore
from culture.orchestrator.members.hiring import MemberHiring
from culture.orchestrator.team_context import TeamContext

LIMITS = {"team": {"usd": 4.0, "tokens": 4_000}, "task": {"usd": 2.0, "tokens": 2_000}}


class Crew:
    """A team of one manager per task, whose daemons write down what they are told."""

    def __init__(self, folder: Path) -> None:
        self.store = TeamStore(folder)
        self.store.open()
        self.orders: list[tuple[str, str]] = []
        self.announced: list[str] = []
        config = TeamConfig(slug="demo", project_dir=str(folder), budget=TeamBudget.model_validate(LIMITS))
        context = SimpleNamespace(config=config, store=self.store, daemons=self, rooms=self)
        self.budget = Budget(cast(TeamContext, context), cast(MemberHiring, None))
        for id, name in (("demo-1", "Ramona"), ("demo-2", "Ulf")):
            self.store.done(Act.TASK, id=id, text="do it", by="spark-ori", msgid=id)
            hire = {"name": name, "nick": f"spark-{name}", "role": "manager", "task": id, "channels": [f"#work-{id}"]}
            self.store.intend(Act.HIRE, **hire)
            self.store.done(Act.HIRE, **hire)

    async def call(self, nick: str, verb: str, **_: Any) -> dict[str, Any]:
        if verb != "status":
            self.orders.append((nick.removeprefix("spark-"), verb))
        return {"state": "idle"}

    async def say(self, room: str, text: str) -> None:
        self.announced.append(text)

    async def say_once(self, key: str, text: str, *rooms: str) -> None:
        self.announced.append(text)

    async def use(self, name: str, *, usd: float = 0.0, tokens: int = 0) -> list[tuple[str, str]]:
        """Record what a member has used in all; return what the members are told then."""
        self.store.done(Act.SPENT, nick=f"spark-{name}", tokens=tokens, cost_usd=usd, session="s", context_pct=1.0)
        return await self.enforce()

    async def allow(self, id: str, usd: float) -> list[tuple[str, str]]:
        """Raise a budget; return what the members are told then."""
        self.store.done(Act.ALLOWANCE, id=id, usd=usd, tokens=None)
        return await self.enforce()

    async def enforce(self) -> list[tuple[str, str]]:
        self.orders.clear()
        await self.budget.enforce()
        return list(self.orders)


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    made = Crew(tmp_path)
    yield made
    made.store.close()


@pytest.mark.parametrize(
    ("almost", "exactly"),
    [({"usd": 1.99}, {"usd": 2.0}), ({"tokens": 1_999}, {"tokens": 2_000})],
    ids=["dollars", "tokens"],
)
async def test_budget_that_is_used_exactly_is_spent(
    crew: Crew, almost: dict[str, Any], exactly: dict[str, Any]
) -> None:
    assert await crew.use("Ramona", **almost) == []
    assert await crew.use("Ramona", **exactly) == [("Ramona", "pause")]
    assert crew.store.state.parked == {"demo-1"}
    assert await crew.enforce() == [], "once"


async def test_team_budget_that_is_used_exactly_is_spent(crew: Crew) -> None:
    assert await crew.use("Ramona", usd=1.5) == []
    await crew.allow("demo-2", 9.0)
    assert sorted(await crew.use("Ulf", usd=2.5)) == [("Ramona", "pause"), ("Ulf", "pause")]
    assert crew.store.state.parked == {TEAM}


async def test_nobody_goes_on_whom_another_spent_budget_stops(crew: Crew) -> None:
    await crew.use("Ramona", usd=2.0)
    await crew.use("Ulf", usd=2.0)
    assert crew.store.state.parked == {TEAM, "demo-1", "demo-2"}
    assert await crew.allow("demo-1", 9.0) == [], "the team's budget is spent still"
    assert await crew.allow(TEAM, 9.0) == [("Ramona", "resume")], "the budget of demo-2 is spent still"
    assert await crew.allow("demo-2", 9.0) == [("Ulf", "resume")]
    assert crew.store.state.parked == frozenset()
