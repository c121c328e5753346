"""What is said in a team's rooms is acted upon, all of it, whatever comes between."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from culture.config import paths
from culture.orchestrator.errors import NotHired
from culture.orchestrator.irc import MARK, ReadCursor, TeamRooms
from culture.orchestrator.journal.state import Act, TeamMember
from culture.orchestrator.journal.store import TeamStore
from culture.orchestrator.team import Team
from culture.protocol.vocabulary import UserClass
from culture.server.ircd import IRCd
from culture.transport import Address, ClientIdentity, Message, NotSent, catchup
from tests.orchestrator.crew import at_work, end_members, heard, team_yaml
from tests.support.client import registered
from tests.support.waiting import until

SILENT = [{"when": "Your task is", "steps": [{"say": "ok"}]}]


@pytest.fixture(autouse=True)
async def ended(home: Path) -> AsyncIterator[None]:
    yield
    await end_members(home)


class Crash(BaseException):
    """The process is killed here."""


@pytest.mark.requirement("O24")
async def test_of_a_message_with_two_tasks_a_crash_loses_neither(
    ircd: IRCd, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": SILENT})
    both = "TASK: the first\nTASK: the second"
    said = Message("#standup-demo", "spark-ori", both, datetime.now(UTC), "a.1", kind=UserClass.HUMAN)
    async with at_work(config) as team:
        book = team.context.store
        intend = book.intend

        def deadly(what: Act, **data: Any) -> None:
            if data.get("text") == "the second":
                raise Crash
            intend(what, **data)

        with monkeypatch.context() as patched:
            patched.setattr(book, "intend", deadly)
            with pytest.raises(Crash):
                await team.inbound.handle(said)
        cursor = ReadCursor(paths.team_dir("demo") / MARK, book)
        assert not cursor.knows("a.1")
        await team.inbound.handle(replace(said, missed=True))
        assert [task.text for task in book.state.tasks.values()] == ["the first", "the second"]
        assert cursor.knows("a.1")


async def test_a_mark_does_not_pass_what_the_server_cannot_tell_yet(
    ircd: IRCd, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = team_yaml(home, project, ircd.port, {"manager": SILENT}, limits={"tasks": 1})

    async def sleeps(*_: Any) -> bool:
        raise catchup.HistoryUnavailable("the database sleeps")

    async with registered(ircd.port, "spark-ori") as ori:
        async with at_work(config):
            await ori.join("#standup-demo")
        await ori.ask("PRIVMSG #standup-demo :TASK: while nobody was there")
        with monkeypatch.context() as patched:
            patched.setattr(catchup, "_by_arrival", sleeps)
            async with at_work(config) as team:
                for _ in range(2):  # the first was acted upon when the second is answered
                    await ori.ask("PRIVMSG #standup-demo :TASK: @Nobody hello")
                    await heard(ori, "#standup-demo", "nobody in the team is called Nobody")
                assert team.context.rooms.irc.is_behind
        async with at_work(config) as team:
            await until(lambda: "demo-1" in team.context.store.state.tasks)


async def test_more_may_be_said_while_the_team_is_down_than_can_wait(
    ircd: IRCd, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("culture.orchestrator.irc._MOST_WAITING", 4)
    config = team_yaml(home, project, ircd.port)
    async with registered(ircd.port, "spark-ori") as ori:
        async with at_work(config):
            await ori.join("#project-demo")
        for number in range(6):
            await ori.ask(f"PRIVMSG #project-demo :number {number}")
        async with asyncio.timeout(60), at_work(config) as team:
            await until(lambda: len([key for key in team.context.store.state.prompts if key.startswith("wake-")]) == 6)


async def test_also_where_nobody_could_be_hired_before(
    ircd: IRCd, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("culture.orchestrator.irc._MOST_WAITING", 4)
    config = team_yaml(home, project, ircd.port)

    async def nobody(team: Team) -> TeamMember:
        raise NotHired("there is no such program")

    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#project-demo")
        with monkeypatch.context() as patched, pytest.raises(NotHired):
            patched.setattr(Team, "spawn_em", nobody)
            async with at_work(config):
                pass
        for number in range(6):
            await ori.ask(f"PRIVMSG #project-demo :number {number}")
        async with asyncio.timeout(60), at_work(config) as team:
            assert team.context.store.state.em is not None


@pytest.mark.requirement("O24")
async def test_a_task_is_begun_in_its_room_also_when_the_server_was_away_for_a_moment(
    ircd: IRCd, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = team_yaml(home, project, ircd.port)

    async def away(name: str, key: str = "") -> None:
        raise NotSent("the connection was lost", uncertain=True)

    async with registered(ircd.port, "spark-ori") as ori, at_work(config) as team:
        await ori.join("#standup-demo")
        with monkeypatch.context() as patched:
            patched.setattr(team.context.rooms.irc, "join_channel", away)
            ori.send("PRIVMSG #standup-demo :TASK: say hello")
            await until(lambda: "demo-1" in team.context.store.state.tasks)
            await team.context.jobs.settle()
        await team.heartbeat.beat()
        await heard(ori, "#standup-demo", "[demo-1] done")


async def test_what_a_stranger_says_under_the_nick_of_a_member_is_in_no_hand_off(tmp_path: Path) -> None:
    """A member that is away, and has no account, does not keep its nick from others."""
    here = TeamRooms(Address("127.0.0.1", 1), ClientIdentity("spark-team-demo"), tmp_path, TeamStore(tmp_path))
    spoke: list[str] = []
    here.on_spoke = spoke.append
    said = Message("#project-demo", "spark-Ramona", "@spark-Harper run it", datetime.now(UTC), "a.1")
    here._on_message(replace(said, kind=UserClass.UNKNOWN, mentions=("spark-Harper",)))
    assert here.recent_lines("spark-Ramona") == "" and spoke == []
    assert not here.has_just_mentioned("spark-Ramona", "spark-Harper")
    here._on_message(replace(said, kind=UserClass.AGENT, text="done"))
    assert here.recent_lines("spark-Ramona").endswith("<spark-Ramona> done") and spoke == ["spark-Ramona"]
