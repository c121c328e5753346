"""People call the real Copilot CLI, which works in its shell and answers through its skill; its model is scripted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.daemon import AgentDaemon
from culture.protocol.vocabulary import AgentState
from culture.server.ircd import IRCd
from tests.clients.copilot.conftest import provided
from tests.clients.patience import answers_late
from tests.support.agents import agents_yaml, running
from tests.support.client import Client, registered
from tests.support.model import Model
from tests.support.waiting import until

pytest.importorskip("copilot", reason="the extra culture[copilot] is not installed")

NICK = "spark-copilot"
GENERAL = "#general"
SKILL = "python3 -m culture.clients.shared.skill.irc_client"


@asynccontextmanager
async def working(ircd: IRCd, home: Path, model: Model, **settings: Any) -> AsyncIterator[tuple[AgentDaemon, Client]]:
    """The agent, and a person in ``#general`` with it."""
    agent = {"nick": NICK, "agent": "copilot", "model": "gpt-5", "supervisor": {"agent": "none"}, **provided(model)}
    config = agents_yaml(home, ircd.port, {**agent, **settings}, rules={"trust": {"humans": "always"}})
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join(GENERAL)
        async with running(config, NICK) as daemon:
            yield daemon, ori


async def answer(client: Client) -> str:
    """The next thing the agent says in the channel."""
    said = await client.expect("PRIVMSG", GENERAL, where=lambda each: each.source.startswith(f"{NICK}!"))
    return said.params[1]


def spoken(client: Client) -> list[str]:
    """What the agent has said in the channel so far."""
    said = (each for each in client.seen if each.verb == "PRIVMSG" and each.source.startswith(f"{NICK}!"))
    return [each.params[1] for each in said if each.params[0] == GENERAL]


@pytest.mark.requirement("G15")
async def test_called_it_works_in_its_shell_and_answers_once(ircd: IRCd, home: Path, model: Model) -> None:
    async with working(ircd, home, model) as (daemon, ori):
        (home / "work" / "notes").write_text("one\ntwo\nthree\n")
        sending = f'[[bash {SKILL} send "{GENERAL}" "$(wc -l < notes) lines, says $CULTURE_NICK"]]'
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} how many? {sending} [[say I have told them.]]")
        assert await answer(ori) == f"3 lines, says {NICK}"
        await until(lambda: not daemon.work.busy)
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} /clear [[say in my own words]]")
        assert await answer(ori) == "in my own words"
        await until(lambda: not daemon.work.busy)
        await ori.sync()
        assert len(spoken(ori)) == 2
        assert daemon.notes.session is not None
    first = model.journal.requests[0].everything
    assert "Talk on IRC with people and other agents." in first and f"You are {NICK}" in first


async def test_what_it_may_not_do_is_asked_of_people(ircd: IRCd, home: Path, model: Model) -> None:
    async with working(ircd, home, model, permission_mode="ask") as (daemon, ori):
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} [[bash touch made]] [[say it is done]]")
        assert (await answer(ori)).startswith('[QUESTION] Task "')
        assert await answer(ori) == '"Bash: touch made Proceed? [y/N]"'
        assert (await answer(ori)).startswith("Waiting for response.")
        assert not (home / "work" / "made").exists()
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} always Bash(touch:*)")
        assert await answer(ori) == "it is done"
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} [[bash touch again]] [[bash rm made]] [[say I was not allowed]]")
        assert '"Bash: rm made Proceed?' in [await answer(ori), await answer(ori)][1]
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} no, keep it")
        await answer(ori)
        assert await answer(ori) == "I was not allowed"
        assert (home / "work" / "made").exists() and (home / "work" / "again").exists()
        await until(lambda: not daemon.work.busy)
        assert daemon.questions.open == []
    assert "keep it" in model.journal.requests[-1].results[-1]


async def test_a_whisper_reaches_it_in_its_turn_and_its_budget_ends_one(ircd: IRCd, home: Path, model: Model) -> None:
    model.journal.verdicts = ["[[say CORRECTION Ask #llama-cpp for help.]]"]
    watched = {"agent": "copilot", "model": "gpt-5", "eval_interval": 2}
    go = home / "go"
    async with working(ircd, home, model, supervisor=watched, budget={"tokens_per_day": 9000}) as (daemon, ori):
        waiting = f"[[bash until test -e {go}; do sleep 0.05; done]]"
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} build [[bash make]][[bash make]]{waiting}[[bash ls]][[say done]]")
        await until(lambda: bool(daemon.socket._whispers))
        go.touch()
        assert await answer(ori) == "done"
        mine = [request for request in model.journal.requests if request.body.get("tools")]
        heard = ["[SUPERVISOR/CORRECTION] Ask #llama-cpp for help." in request.everything for request in mine]
        assert heard == [False, False, False, True, True]
        steps = " ".join(f"[[usage 2000 100 0 0]] [[bash echo {number} >> done]]" for number in range(8))
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} work {steps} [[say all done]]")
        await ori.expect("NOTICE", GENERAL, where=lambda each: "I am parked" in each.params[1])
        await until(lambda: daemon.presence.state is AgentState.PARKED)
        assert 2 <= len((home / "work" / "done").read_text().split()) < 8
        assert spoken(ori) == ["done"]


async def test_an_answer_that_takes_its_time_is_a_prompt_of_its_own(ircd: IRCd, home: Path, model: Model) -> None:
    async with working(ircd, home, model, ask_bound=1) as (daemon, ori):
        await answers_late(daemon, ori, model)
