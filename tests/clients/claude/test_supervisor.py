"""Claude watches Claude: its verdicts reach the agent's next call of the model, and people when they do not help."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from culture.clients.shared.supervisor import SYSTEM_PROMPT, SupervisorSetup
from culture.config.agents import SupervisorConfig
from culture.config.team import RoleConfig
from culture.lib.process.orphans import carrying
from culture.protocol.vocabulary import AgentState
from culture.server.ircd import IRCd
from tests.clients.claude.fifo import MakeFifo
from tests.clients.claude.rooms import GENERAL, NICK, working
from tests.clients.shared.test_daemon import answered
from tests.clients.shared.test_supervision import said_in
from tests.clients.shared.test_supervisor import called, said
from tests.support.client import registered
from tests.support.model import Model
from tests.support.model.journal import Request
from tests.support.receiver import HOST, Receiver, receiving
from tests.support.waiting import PATIENCE, until

if TYPE_CHECKING:
    from culture.clients.claude.supervisor import ClaudeSupervisor

WATCHED: dict[str, Any] = {"agent": "claude"}


def judged(model: Model) -> list[Request]:
    """What supervisors asked."""
    return [request for request in model.journal.requests if SYSTEM_PROMPT.splitlines()[0] in request.everything]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A real HTTP endpoint."""
    async with receiving() as running:
        yield running


@pytest.fixture
async def supervisor(environment: None, tmp_path: Path) -> "AsyncIterator[ClaudeSupervisor]":
    """One that is fed by the test."""
    from culture.clients.claude.supervisor import ClaudeSupervisor

    watching = ClaudeSupervisor(SupervisorSetup(NICK, tmp_path, SupervisorConfig().model, timeout=PATIENCE))
    await watching.start()
    try:
        yield watching
    finally:
        await watching.stop()


@pytest.mark.requirement("F06", "I06", "I20", "K04")
async def test_one_question_without_tools_or_files_is_asked(
    supervisor: "ClaudeSupervisor", model: Model, tmp_path: Path
) -> None:
    (tmp_path / "CLAUDE.md").write_text("The agent's own marmot.")
    secret = tmp_path / "secret"
    secret.write_text("hunter2hunter2")
    spent: list[tuple[int, float]] = []
    supervisor.on_spent = lambda used, cost: spent.append((used, cost))
    supervisor.task = lambda: f"benchmark nemotron @{secret}"
    model.journal.verdicts = ["[[usage 900 7]] [[say CORRECTION Read the error.]]"]
    for _ in range(4):
        await supervisor.observe(called("Bash", command="cmake .."))
    whispers: list[tuple[str, str]] = []

    async def whispered(message: str, action: str) -> None:
        whispers.append((message, action))

    supervisor.on_whisper = whispered
    await supervisor.observe(said(f"/clear @{secret}"))
    await supervisor.rest()
    assert whispers == [("Read the error.", "CORRECTION")]
    (request,) = model.journal.requests
    assert request.body["model"].startswith("claude-sonnet-4-6")
    assert request.body.get("tools", []) == []
    assert SYSTEM_PROMPT in "".join(part["text"] for part in request.body["system"])
    assert "benchmark nemotron" in request.prompt and request.prompt.count("cmake ..") == 4
    for foreign in ("marmot", "hunter2"):
        assert foreign not in request.everything
    ((used, cost),) = spent
    assert used >= 907 and cost > 0
    assert not list((tmp_path / "home" / ".claude").rglob("*.jsonl"))


@pytest.mark.fault("E26")
@pytest.mark.parametrize(
    "answer, told", [("[[err 401 invalid x-api-key]]", "Invalid API key"), ("[[say Hello!]]", "no verdict")]
)
async def test_a_model_that_fails_is_told_of(
    supervisor: "ClaudeSupervisor", model: Model, answer: str, told: str
) -> None:
    troubles: list[str] = []
    supervisor.on_trouble = troubles.append
    model.journal.verdicts = [answer] * 3
    for _ in range(5):
        await supervisor.observe(said("working"))
    await supervisor.rest()
    assert len(troubles) == 1 and told in troubles[0]
    assert carrying(supervisor.setup.token) == []


@pytest.mark.fault("E26")
async def test_a_question_that_hangs_is_given_up_with_its_process(
    environment: None, model: Model, tmp_path: Path
) -> None:
    from culture.clients.claude.supervisor import ClaudeSupervisor

    supervisor = ClaudeSupervisor(SupervisorSetup(NICK, tmp_path, timeout=3))
    troubles: list[str] = []
    supervisor.on_trouble = troubles.append
    model.journal.verdicts = ["[[hang]]"] * 3
    await supervisor.start()
    for _ in range(5):
        await supervisor.observe(said("working"))
    await supervisor.rest()
    assert troubles == ["no verdict within 3 s"]
    async with asyncio.timeout(PATIENCE):
        await supervisor.stop()
    assert carrying(supervisor.setup.token) == []


@pytest.mark.requirement("F27", "H18", "I09", "I18", "I23")
async def test_a_whisper_changes_what_the_agent_asks_its_model_next(
    ircd: IRCd, home: Path, model: Model, make_fifo: MakeFifo
) -> None:
    model.journal.verdicts = ["[[say CORRECTION Ask #llama-cpp for help.]]"]
    go = make_fifo()
    retries = "".join(f"[[bash cmake --build {number}]]" for number in range(5))
    async with working(ircd, home, supervisor=WATCHED) as (daemon, ori):
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} build {retries}[[bash read line < {go.path}]][[bash ls]][[say done]]")
        await until(lambda: bool(daemon.socket._whispers))
        go.write("on")
        assert await answered(ori, GENERAL) == "done"
        await daemon.supervision._supervisor.rest()  # type: ignore[union-attr]
    mine = [request for request in model.journal.requests if "[IRC @mention" in request.prompt]
    heard = ["[SUPERVISOR/CORRECTION] Ask #llama-cpp for help." in request.everything for request in mine]
    first = heard.index(True)
    assert not any(heard[:first]) and all(heard[first:])
    assert len(mine[first].results) >= 6
    assert mine[-1].everything.count("[SUPERVISOR/CORRECTION] Ask #llama-cpp for help.") == 1


@pytest.mark.requirement("I10", "I12", "I14", "I15", "J03", "L08")
async def test_two_whispers_that_fail_call_people_and_resume_lets_it_go_on(
    ircd: IRCd, home: Path, model: Model, receiver: Receiver
) -> None:
    model.journal.verdicts = ["[[say CORRECTION You retried cmake.]]"] * 3
    settings = {
        "supervisor": {**WATCHED, "eval_interval": 4},
        "webhooks": {"url": receiver.url(), "allow_private": [HOST], "events": ["agent_spiraling"]},
    }
    retries = "[[bash cmake ..]]" * 3
    async with registered(ircd.port, "spark-eve") as eve, working(ircd, home, **settings) as (daemon, ori):
        await eve.join("#alerts")
        for number in range(3):
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} build {number} {retries}[[say built]]")
            assert await answered(ori, GENERAL) == "built"
            await until(lambda: not daemon.work.busy and not daemon._turns._items)
            await daemon.supervision._supervisor.rest()  # type: ignore[union-attr]
        task, reason = f"build 2 {retries}[[say built]]", "Retried same approach 3 times. You retried cmake."
        said = await said_in(eve, "#alerts", "[SPIRALING]")
        assert said == f'[SPIRALING] {NICK} stuck on task "{task}". {reason} Awaiting guidance.'
        assert f'appears stuck on task "{task}". {reason} Awaiting human' in await said_in(
            eve, "#alerts", "[ESCALATION]"
        )
        (post,) = await receiver.got()
        assert {key: post.said[key] for key in ("event", "severity", "nick", "text")} == {
            "event": "agent_spiraling",
            "severity": "warning",
            "nick": NICK,
            "text": said,
        }
        assert len(judged(model)) == 3
        assert daemon.presence.state is AgentState.PAUSED
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} use ninja [[say with ninja]]")
        await until(lambda: daemon.inbox.counts()[0] == 1)
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} resume")
        assert await answered(ori, GENERAL) == "with ninja"
        assert "Still no progress. Escalating to IRC and webhook." in model.journal.asked("use ninja")[0].prompt
        assert len(receiver.posts) == 1


async def test_the_supervisor_s_process_is_not_the_agent_s(ircd: IRCd, home: Path, model: Model) -> None:
    model.journal.verdicts = ["[[hang]]"]
    async with working(ircd, home, supervisor={**WATCHED, "eval_interval": 1}) as (daemon, ori):
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} hello [[say hi]]")
        assert await answered(ori, GENERAL) == "hi"
        await until(lambda: bool(judged(model)))
        supervisor = daemon.supervision._supervisor
        theirs = set(carrying(supervisor.setup.token))  # type: ignore[union-attr]
        assert theirs and theirs.isdisjoint(carrying(daemon.notes.token or ""))
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} still there? [[say yes]]")
        assert await answered(ori, GENERAL) == "yes"
    assert carrying(supervisor.setup.token) == []  # type: ignore[union-attr]


@pytest.mark.requirement("O09")
async def test_a_team_asks_it_who_is_idle_and_not_how_an_agent_does(
    environment: None, model: Model, tmp_path: Path
) -> None:
    from culture.orchestrator.heartbeat import SYSTEM_PROMPT as OF_TEAMS
    from culture.orchestrator.heartbeat import judge

    asked = judge(RoleConfig(model="claude-haiku-4-5"), NICK, tmp_path)
    assert await asked("Is it idle? [[say Yes.]]") == "Yes."
    (request,) = model.journal.requests
    system = "".join(part["text"] for part in request.body["system"])
    assert OF_TEAMS in system and SYSTEM_PROMPT.splitlines()[0] not in system
