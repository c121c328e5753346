"""People call the real OpenCode, behind ACP in a real daemon; its model is scripted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.daemon import AgentDaemon
from culture.server.ircd import IRCd
from tests.clients.patience import answers_late
from tests.clients.shared.test_daemon import NICK, answered
from tests.support.agents import agents_yaml, running
from tests.support.client import Client, registered
from tests.support.model import Model
from tests.support.waiting import until

pytest.importorskip("acp", reason="the extra culture[acp] is not installed")

GENERAL = "#general"
SKILL = "python3 -P -m culture.clients.shared.skill.irc_client"
START = 50.0


@asynccontextmanager
async def working(
    ircd: IRCd, home: Path, command: list[str], **settings: Any
) -> AsyncIterator[tuple[AgentDaemon, Client]]:
    """The agent, and a person in ``#general`` with it."""
    agent = {"nick": NICK, "agent": "acp", "acp_command": command, "supervisor": {"agent": "none"}, **settings}
    config = agents_yaml(home, ircd.port, agent, rules={"trust": {"humans": "always", "agents": "never"}})
    async with registered(ircd.port, "spark-ori", "message-tags echo-message") as ori:
        await ori.join(GENERAL)
        async with running(config, NICK, START) as daemon:
            yield daemon, ori


@pytest.mark.timeout(120)
@pytest.mark.requirement("F16", "G16", "J11")
async def test_it_works_answers_asks_and_takes_what_people_write_for_text(
    ircd: IRCd, home: Path, opencode: list[str], model: Model, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("hunter2hunter2")
    async with working(ircd, home, opencode, permissions="ask") as (daemon, ori):
        # Its own skill needs nobody's leave.
        sending = f'[[bash {SKILL} send "{GENERAL}" "on my own"]]'
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} who is it? {sending} [[say I have told them]]")
        assert await answered(ori, GENERAL) == "on my own"
        await until(lambda: not daemon.work.busy)
        session = daemon.notes.session
        for text in (f"@{tmp_path}/secret", "/compact", "/init", "!cat /etc/hostname"):
            ori.send(f"PRIVMSG {NICK} :{text}")
            assert await answered(ori, "spark-ori") == "ok"
            assert model.journal.requests[-1].prompt.splitlines()[0].endswith(f"> {text}")
        assert daemon.notes.session == session
        await ori.sync()
        said = [each.params[1] for each in ori.seen if each.verb == "PRIVMSG" and each.source.startswith(NICK)]
        assert said == ["on my own", *["ok"] * 4]
        assert daemon.questions.open == []
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} [[bash echo $CULTURE_NICK > made]] [[say it is done]]")
        assert (await answered(ori, GENERAL)).startswith('[QUESTION] Task "')
        assert '"Bash: echo $CULTURE_NICK > made' in await answered(ori, GENERAL)
        assert (await answered(ori, GENERAL)).startswith("Waiting for response.")
        assert not (home / "work" / "made").exists()
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} yes")
        assert await answered(ori, GENERAL) == "it is done"
        assert (home / "work" / "made").read_text() == f"{NICK}\n"
        await until(lambda: not daemon.work.busy)
        assert daemon.questions.open == []
    first = next(request for request in model.journal.requests if "who is it?" in request.prompt)
    assert f"You are {NICK}, an agent on IRC" in first.prompt
    assert "Talk on IRC with people and other agents" in first.everything
    assert not any("hunter2" in request.everything for request in model.journal.requests)


@pytest.mark.timeout(120)
async def test_an_answer_that_takes_its_time_is_a_prompt_of_its_own(
    ircd: IRCd, home: Path, opencode: list[str], model: Model
) -> None:
    async with working(ircd, home, opencode, ask_bound=1) as (daemon, ori):
        await answers_late(daemon, ori, model)
