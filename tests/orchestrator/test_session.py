"""A member's daemon is started, found again, given prompts and ended; its session tells what that used."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from culture.cli.agents.daemon_launch import launch
from culture.clients.shared import ending, pidfile
from culture.clients.shared.ending import Ended
from culture.lib.process.background import BackgroundProcess
from culture.lib.process.orphans import carrying
from culture.orchestrator.errors import DaemonStays, MemberNotStarted, NoAnswer
from culture.orchestrator.members.daemons import DaemonAway, MemberDaemons
from culture.orchestrator.members.members import AgentSession, ContextTracker, Fill, ManagedAgent
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import held
from tests.support.agents import agents_yaml, playbook, prompts
from tests.support.waiting import until

NICK = "spark-Ramona"


@pytest.fixture
async def daemons(home: Path) -> AsyncIterator[MemberDaemons]:
    """Whatever is still running afterwards is ended."""
    made = MemberDaemons(lambda nick: launch(nick, home / "agents.yaml"))
    yield made
    await made.stop(NICK)


def session(daemons: MemberDaemons, home: Path, **more: Any) -> AgentSession:
    return AgentSession(
        name="Ramona",
        model="claude-sonnet-4-6",
        system_prompt="You are Ramona.",
        cwd=str(home / "work"),
        mcp_servers={},
        context_tracker=ContextTracker(200_000, 90),
        daemons=daemons,
        nick=NICK,
        **more,
    )


def pid() -> int:
    note = pidfile.running(NICK)
    assert note is not None
    return note.pid


@pytest.mark.requirement("O03", "O12", "O14")
async def test_prompts_are_sent_one_at_a_time_and_what_they_used_is_known(
    ircd: IRCd, home: Path, daemons: MemberDaemons
) -> None:
    rules = [
        {"when": "first", "steps": [{"usage": {"tokens": 100_000, "cost_usd": 0.25}}, {"say": "one"}]},
        {"when": "second", "steps": [{"usage": {"tokens": 7, "cost_usd": 0.5, "context_pct": 91}}, {"say": "two"}]},
    ]
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    await daemons.ensure(NICK)
    member = ManagedAgent(session(daemons, home), task_id="demo-1", role="manager").session
    assert (member.session_id, member.last_active, member._alive, member._send_timeout) == (None, None, True, 300.0)
    first, second = await asyncio.gather(member.send("first"), member.send("second"))
    assert [(sent.outcome, sent.text) for sent in (first, second)] == [("done", "one"), ("done", "two")]
    assert prompts(home / "work") == ["[TEAM] first", "[TEAM] second"]
    assert member.session_id == first.session == second.session is not None
    assert (member.tokens, member.cost_usd) == (100_007, 0.75)
    assert (member.context_tracker.pct, member.context_tracker.fill) == (91.0, Fill.SHIFT)
    member.last_active = None
    status = await member.refresh()
    assert status["directory"] == member.cwd
    assert member.last_active is not None
    await member.kill()
    assert not member.is_alive
    assert not daemons.is_running(NICK)
    with pytest.raises(NoAnswer, match="Ramona was ended"):
        await member.send("third")


@pytest.mark.requirement("O03")
async def test_a_prompt_that_takes_too_long_goes_on_and_can_be_waited_for_again(
    ircd: IRCd, home: Path, daemons: MemberDaemons
) -> None:
    rules = [{"when": "long", "steps": held(home)}]
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    await daemons.ensure(NICK)
    hasty, patient = session(daemons, home, _send_timeout=0.05), session(daemons, home)
    with pytest.raises(NoAnswer, match=r"Ramona has not finished within 0\.05 s"):
        await hasty.send("long", key="k1")
    assert hasty.session_id is None
    (home / "go").touch()
    assert (await patient.send("long", key="k1")).text == "done"
    assert prompts(home / "work") == ["[TEAM] long"]


@pytest.mark.requirement("O03")
async def test_a_prompt_outlives_its_daemon(ircd: IRCd, home: Path, daemons: MemberDaemons) -> None:
    rules = [{"when": "repeated", "steps": [{"say": "again"}]}, {"when": "long", "steps": held(home)}]
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    await daemons.ensure(NICK)
    sending = asyncio.create_task(session(daemons, home).send("long", key="k1"))
    await until(lambda: prompts(home / "work") != [])
    os.kill(pid(), signal.SIGKILL)
    await until(lambda: not daemons.is_running(NICK))
    with pytest.raises(DaemonAway):
        await daemons.call(NICK, "status")
    await daemons.ensure(NICK)
    assert (await sending).text == "again"


async def test_another_orchestrator_finds_the_daemon_that_runs(ircd: IRCd, home: Path, daemons: MemberDaemons) -> None:
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    await asyncio.gather(daemons.ensure(NICK), daemons.ensure(NICK))
    first = pid()

    def never(nick: str) -> Any:
        raise AssertionError(f"{nick} is started twice")

    later = MemberDaemons(never)
    await later.ensure(NICK)
    assert (await later.call(NICK, "status"))["nick"] == NICK
    with pytest.raises(NoAnswer, match="is no request"):
        await later.call(NICK, "nonsense")
    assert pid() == first
    token, *_ = ending.tokens(NICK)
    assert carrying(token) != []
    await later.stop(NICK)
    assert not daemons.is_running(NICK)
    assert carrying(token) == []
    await later.stop(NICK)


async def test_one_that_hangs_is_started_anew(ircd: IRCd, home: Path, daemons: MemberDaemons) -> None:
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    await daemons.ensure(NICK)
    first = pid()
    os.kill(first, signal.SIGSTOP)
    hasty = MemberDaemons(
        lambda nick: launch(nick, home / "agents.yaml"),
        end=partial(ending.end, grace=0.05, told=0.05, asked=0.05),
        answer_patience=0.2,
    )
    await hasty.ensure(NICK)
    assert pid() != first
    assert (await hasty.call(NICK, "status"))["state"] == "idle"
    await daemons.stop(NICK)
    assert not hasty.is_running(NICK) and not daemons.is_running(NICK)


async def test_why_one_does_not_start_is_said(ircd: IRCd, home: Path, daemons: MemberDaemons) -> None:
    agents_yaml(home, ircd.port, {"nick": NICK, "instructions_file": str(home / "nowhere.md")})
    with pytest.raises(MemberNotStarted, match=r"did not start \(exit code 78\): .*nowhere\.md is not there"):
        await daemons.ensure(NICK)
    slow = MemberDaemons(lambda nick: launch(nick, home / "agents.yaml"), start_patience=0.01)
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    with pytest.raises(MemberNotStarted, match=r"was not ready after 0\.01 s and was ended"):
        await slow.ensure(NICK)
    assert not slow.is_running(NICK)


async def test_one_that_is_being_started_when_nobody_waits_any_more_can_be_found(
    ircd: IRCd, home: Path, daemons: MemberDaemons
) -> None:
    """As when the orchestrator is stopped in this moment: `culture team down` ends those whose files it finds."""
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    begun, may = threading.Event(), threading.Event()

    def slowly(nick: str) -> BackgroundProcess:
        begun.set()
        may.wait(30)
        return launch(nick, home / "agents.yaml")

    made = MemberDaemons(slowly)
    starting = asyncio.create_task(made.ensure(NICK))
    await until(begun.is_set)
    starting.cancel()
    may.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert pidfile.running(NICK) is not None
    await made.stop(NICK)
    assert not made.is_running(NICK)


async def test_one_that_cannot_be_ended_does_not_count_as_gone(home: Path) -> None:
    async def in_vain(nick: str) -> tuple[Ended, int]:
        return Ended.STAYS, 0

    with pytest.raises(DaemonStays, match="cannot be ended"):
        await MemberDaemons(lambda nick: launch(nick), end=in_vain).stop(NICK)
