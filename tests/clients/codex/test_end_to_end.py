"""People call the real Codex, which works in its shell and answers through its skill; its model is scripted."""

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.daemon import AgentDaemon
from culture.protocol.vocabulary import AgentState
from culture.server.ircd import IRCd
from tests.clients.conformance import programs
from tests.clients.patience import answers_late
from tests.support.agents import agents_yaml, running
from tests.support.client import Client, registered
from tests.support.model import Model
from tests.support.waiting import until

NICK = "spark-codex"
GENERAL = "#general"
SKILL = "python3 -P -m culture.clients.shared.skill.irc_client"
"""As SKILL.md teaches it."""
ASKS = {"approval_policy": "untrusted"}
PATCH = "apply_patch <<'END'\n*** Begin Patch\n*** Add File: new.txt\n+a marmot\n*** End Patch\nEND\n"


@asynccontextmanager
async def working(ircd: IRCd, home: Path, **settings: Any) -> AsyncIterator[tuple[AgentDaemon, Client]]:
    """The agent, and a person in ``#general`` and ``#alerts`` with it."""
    agent = {"nick": NICK, "agent": "codex", "supervisor": {"agent": "none"}, **settings}
    async with registered(ircd.port, "spark-ori", "message-tags echo-message") as ori:
        for channel in (GENERAL, "#alerts"):
            await ori.join(channel)
        async with running(agents_yaml(home, ircd.port, agent), NICK) as daemon:
            yield daemon, ori


def spoken(client: Client) -> list[str]:
    """What the agent has said in the channel so far, as itself."""
    said = (each for each in client.seen if each.verb == "PRIVMSG" and each.source.startswith(f"{NICK}!"))
    return [each.params[1] for each in said if each.params[0] == GENERAL]


async def answered(client: Client) -> str:
    """What it says next in the channel."""
    said = await client.expect("PRIVMSG", GENERAL, where=lambda each: each.source.startswith(f"{NICK}!"))
    return said.params[1]


@pytest.mark.requirement("F32", "G15", "H20", "K09")
async def test_called_it_works_in_its_shell_and_answers_once(ircd: IRCd, home: Path, model: Model) -> None:
    async with working(ircd, home) as (daemon, ori):
        (home / "work" / "notes").write_text("one\ntwo\nthree\n")
        sending = f'[[bash {SKILL} send "{GENERAL}" "$(wc -l < notes) lines, says $CULTURE_NICK"]]'
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} how many? {sending} [[say I have told them.]]")
        await ori.expect("PRIVMSG", GENERAL, f"3 lines, says {NICK}")
        await until(lambda: not daemon.work.busy)
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} and what do you say? [[say nothing more]]")
        assert await answered(ori) == "nothing more"
        await ori.sync()
        assert spoken(ori) == [f"3 lines, says {NICK}", "nothing more"]
    first = model.journal.requests[0]
    for known in (
        "Talk on IRC with people and other agents.",
        f"You are {NICK}, an agent",
    ):
        assert known in first.everything
    assert f"Sent to {GENERAL}." in model.journal.asked("how many?")[-1].results[-1]


@pytest.mark.fault("F11")
async def test_what_codex_asks_is_a_question_that_a_person_answers(ircd: IRCd, home: Path, model: Model) -> None:
    made = home / "work" / "made"
    async with working(ircd, home, **ASKS) as (daemon, ori):
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} [[bash touch made]] [[say it is done]]")
        assert (await answered(ori)).startswith('[QUESTION] Task "')
        assert await answered(ori) == '"Bash: touch made Proceed? [y/N]"'
        await answered(ori)
        assert not made.exists()
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} yes")
        assert await answered(ori) == "it is done"
        assert made.exists()
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} [[bash rm made]] [[say I was not allowed]]")
        assert '"Bash: rm made Proceed?' in [await answered(ori), await answered(ori)][1]
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} no, keep it")
        await answered(ori)
        assert await answered(ori) == "I was not allowed"
        assert made.exists()
        await until(lambda: not daemon.work.busy)
        assert daemon.questions.open == []
    assert "denied by spark-ori:" in model.journal.requests[-1].everything
    assert "no, keep it" in model.journal.requests[-1].everything


async def test_a_change_of_a_file_is_asked_for_with_its_name(ircd: IRCd, home: Path, model: Model) -> None:
    changing = json.dumps({"cmd": PATCH})
    async with working(ircd, home, **ASKS) as (daemon, ori):
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} [[call exec_command {changing}]] [[say changed]]")
        await answered(ori)
        assert (await answered(ori)).startswith('"Edit: new.txt [+1 -0, ')
        shown = [await answered(ori) for _ in range(5)]
        assert shown[:4] == ["  --- new.txt", "  +++ new.txt", "  @@ -0,0 +1 @@", "  +a marmot"]
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} yes")
        assert await answered(ori) == "changed"
        assert (home / "work" / "new.txt").read_text() == "a marmot\n"
        await until(lambda: not daemon.work.busy)


async def test_a_task_that_is_aborted_ends_with_its_question(ircd: IRCd, home: Path, model: Model) -> None:
    async with working(ircd, home, **ASKS) as (daemon, ori):
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} [[bash touch made]] [[say it is done]]")
        for _ in range(3):
            await answered(ori)
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} abort")
        await until(lambda: not daemon.work.busy)
        assert daemon.questions.open == []
        assert not (home / "work" / "made").exists()
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} still there? [[say here]]")
        while await answered(ori) != "here":
            pass


@pytest.mark.fault("E1")
@pytest.mark.requirement("G07", "G08", "G19")
async def test_killed_in_a_turn_it_goes_on_in_its_thread_and_answers_once(ircd: IRCd, home: Path, model: Model) -> None:
    async with working(ircd, home) as (daemon, ori):
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} remember the marmot [[say I do]]")
        assert await answered(ori) == "I do"
        session = daemon.notes.session
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} work [[wait GO]] [[say worked]]")
        await model.journal.arrival("work")
        (program,) = programs(daemon.notes.token or "")
        os.kill(program, signal.SIGKILL)
        await ori.expect("PRIVMSG", "#alerts", where=lambda each: "exited with code -9" in each.params[1])
        model.release("GO")
        assert await answered(ori) == "worked"
        await until(lambda: not daemon.work.busy)
        await ori.sync()
        assert spoken(ori) == ["I do", "worked"]
        assert daemon.notes.session == session is not None
    assert "remember the marmot" in model.journal.requests[-1].everything


@pytest.mark.fault("E31")
async def test_a_budget_that_is_spent_within_a_turn_ends_it_after_the_running_call(
    ircd: IRCd, home: Path, model: Model
) -> None:
    async with working(ircd, home, budget={"tokens_per_day": 5000}) as (daemon, ori):
        steps = " ".join(f"[[usage 2000 100 0 0]] [[bash echo {number} >> done]]" for number in range(8))
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} work {steps} [[say all done]]")
        parked = await ori.expect("NOTICE", GENERAL, where=lambda each: "I am parked" in each.params[1])
        assert "5,000 tokens a day are used" in parked.params[1]
        await until(lambda: daemon.presence.state is AgentState.PARKED)
        assert 2 <= len((home / "work" / "done").read_text().split()) < 8
        assert spoken(ori) == []


@pytest.mark.requirement("I18")
async def test_codex_watches_codex_and_its_whisper_comes_behind_a_tool(ircd: IRCd, home: Path, model: Model) -> None:
    model.journal.verdicts = ["[[say CORRECTION Mind the marmot.]]"]
    async with working(ircd, home, supervisor={"agent": "codex", "eval_interval": 1}) as (daemon, ori):
        gate = home / "gate"
        waiting = f"until test -e {gate}; do sleep 0.05; done"
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} go [[bash echo one]] [[bash {waiting}]] [[bash echo two]] [[say done]]")
        await until(lambda: bool(daemon.socket._whispers))
        gate.touch()
        assert await answered(ori) == "done"
        await until(lambda: not daemon.work.busy)
    assert any("Mind the marmot." in request.everything for request in model.journal.asked("go [[bash"))


async def test_an_answer_that_takes_its_time_is_a_prompt_of_its_own(ircd: IRCd, home: Path, model: Model) -> None:
    async with working(ircd, home, ask_bound=1) as (daemon, ori):
        await answers_late(daemon, ori, model)
