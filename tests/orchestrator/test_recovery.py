"""Recovery of a member that is gone: how often it is restarted, when it is replaced, when its task is given up."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from culture.orchestrator.errors import NotHired
from culture.orchestrator.journal.state import Act, TeamMember
from culture.orchestrator.journal.store import TeamStore
from culture.orchestrator.members.recovery import WINDOW, MemberRecovery

ATTEMPTS = 2


class Team:
    """A manager and an EM whose daemons never run; writes down what recovery does about it."""

    def __init__(self, folder: Path) -> None:
        self.store = TeamStore(folder)
        self.store.open()
        self.did: list[str] = []
        self.now = 0.0
        self.starts = True
        self.store.done(Act.TASK, id="demo-1", text="do it", by="spark-ori", msgid="m1")
        for name, role, task in (
            ("Ramona", "manager", "demo-1"),
            ("Ulf", "worker", "demo-1"),
            ("Harper", "em", None),
        ):
            hire = {"name": name, "nick": f"spark-{name}", "role": role, "task": task, "channels": ["#demo"]}
            self.store.intend(Act.HIRE, **hire)
            self.store.done(Act.HIRE, **hire)
        config = SimpleNamespace(limits=SimpleNamespace(attempts=ATTEMPTS))
        gone = SimpleNamespace(is_running=lambda nick: False)
        context = SimpleNamespace(config=config, store=self.store, daemons=gone, complain=self._complain)
        hiring = SimpleNamespace(settle=self._settle, retire=self._retire)
        shift = SimpleNamespace(begin=lambda member, why, asked: self.did.append(f"{member.name} hands over"))
        followup = SimpleNamespace(report_lost=self._report_lost)
        self.recovery = MemberRecovery(
            cast(Any, context),
            cast(Any, hiring),
            cast(Any, shift),
            cast(Any, followup),
            lambda task, why: self.did.append(f"{task} is given up: {why}"),
            lambda: self.now,
        )

    def member(self, name: str) -> TeamMember:
        return self.store.state.members[f"spark-{name}".lower()]

    async def _settle(self, nick: str) -> None:
        if not self.starts:
            raise NotHired(f"{nick} did not start")

    async def _complain(self, key: str, text: str) -> None: ...

    async def _retire(self, nick: str, why: str) -> None:
        self.did.append(f"{nick} is let go")

    async def _report_lost(self, member: TeamMember, why: str) -> None:
        self.did.append(f"{member.name} is reported lost")


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


async def test_member_is_restarted_so_often_within_the_window_then_replaced(team: Team) -> None:
    ramona = team.member("Ramona")
    for _ in range(ATTEMPTS):
        assert await team.recovery.bring_back(ramona, "gone")
    assert not await team.recovery.bring_back(ramona, "gone") and team.did == ["Ramona hands over"]
    team.now += WINDOW + 1
    assert await team.recovery.bring_back(ramona, "gone"), "earlier restarts are forgotten"


@pytest.mark.requirement("O24")
async def test_task_is_given_up_once_its_managers_were_replaced_again_and_again(team: Team) -> None:
    team.starts = False
    for _ in range(ATTEMPTS + 1):
        assert not await team.recovery.bring_back(team.member("Ramona"), "gone")
    team.now += 1
    handovers, last = team.did[:-1], team.did[-1]
    assert handovers == ["Ramona hands over"] * ATTEMPTS
    assert last == "demo-1 is given up: gone, again and again"


async def test_worker_that_cannot_be_replaced_is_reported_and_the_task_goes_on(team: Team) -> None:
    for _ in range(ATTEMPTS + 1):
        await team.recovery.replace(team.member("Ulf"), "it does not start")
    assert team.did == ["Ulf hands over"] * ATTEMPTS + ["spark-Ulf is let go", "Ulf is reported lost"]


async def test_em_is_never_let_go(team: Team) -> None:
    for _ in range(ATTEMPTS + 1):
        await team.recovery.replace(team.member("Harper"), "it does not start")
    assert team.did == ["Harper hands over"] * ATTEMPTS
