"""An agent asks its team for another agent: in the open, and the orchestrator's word alone counts."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.hiring import hired
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK, answered
from tests.clients.shared.test_errands import wire
from tests.clients.shared.test_wake import with_people
from tests.support.agents import agents_yaml, playbook, running
from tests.support.client import Client, registered
from tests.support.waiting import PATIENCE

TEAM = {"orchestrator": "spark-team-shop", "channel": "#work-shop-1"}
CAPS = "message-tags echo-message"


def member(home: Path, *rules: dict[str, Any]) -> dict[str, Any]:
    channels = ["#general", TEAM["channel"]]
    return {"nick": NICK, "channels": channels, "team": TEAM, "playbook": playbook(home, list(rules))}


async def asked(client: Client) -> tuple[str, str]:
    """The next TASK line: its text and its id."""
    said = await client.expect("PRIVMSG", TEAM["channel"], where=lambda each: each.params[1].startswith("TASK:"))
    return said.params[1], said.tags["msgid"]


def reply(client: Client, msgid: str, text: str) -> None:
    client.send(f"@+draft/reply={msgid} NOTICE {TEAM['channel']} :{text}")


@pytest.mark.requirement("L12")
async def test_an_agent_hires_another_and_is_told_who(ircd: IRCd, home: Path) -> None:
    """The agent's own command line, the daemon, and an orchestrator that has a limit of one."""
    spawn = "python3 -P -m culture.clients.shared.skill.irc_client spawn implementer 'Write the parser.'"
    rule = {"when": "help", "steps": [{"run": f"{spawn} 2>&1"}, {"say": "{output}"}]}
    config = agents_yaml(home, ircd.port, member(home, rule))
    async with registered(ircd.port, TEAM["orchestrator"], CAPS) as team, running(config, NICK):
        await team.join(TEAM["channel"])
        for answer, said in (
            (hired("spark-Ada", "implementer"), "spark-Ada is your implementer; you hear from it in your channel."),
            ("no: one worker at a time", "irc_client: spark-team-shop: no: one worker at a time"),
        ):
            team.send(f"PRIVMSG {TEAM['channel']} :@{NICK} get help")
            text, msgid = await asked(team)
            assert text == "TASK: implementer: Write the parser."
            reply(team, msgid, answer)
            assert (await answered(team, TEAM["channel"])).strip() == said


async def test_only_the_orchestrator_s_reply_to_this_very_line_is_an_answer(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, member(home))
    async with (
        registered(ircd.port, TEAM["orchestrator"], CAPS) as team,
        registered(ircd.port, "spark-eve", CAPS) as eve,
        running(config, NICK),
        wire() as agent,
    ):
        await team.join(TEAM["channel"])
        await eve.join(TEAM["channel"])
        for number in (1, 2):
            agent.ask("spawn_agent", str(number), role="fixer", text=f"part {number}\nwith care")
        (first, one), (_, two) = [await asked(team) for _ in (1, 2)]
        assert first == "TASK: fixer: part 1"
        reply(eve, one, hired("spark-Mallory", "fixer"))
        await eve.sync()
        reply(team, "spark.e.99", hired("spark-Nobody", "fixer"))
        reply(team, two, hired("spark-Bo", "fixer"))
        reply(team, one, hired("spark-Ada", "fixer"))
        answers = [await agent.line() for _ in (1, 2)]
        assert {each["id"]: each["data"]["nick"] for each in answers} == {"1": "spark-Ada", "2": "spark-Bo"}


async def test_a_stranger_with_the_orchestrator_s_nick_hires_nobody(home: Path, tmp_path: Path) -> None:
    """Where people have accounts nobody vouches for a nick that no account owns."""
    async with (
        with_people(tmp_path / "server") as ircd,
        registered(ircd.port, TEAM["orchestrator"], CAPS) as eve,
        running(agents_yaml(home, ircd.port, member(home)), NICK),
        wire() as agent,
    ):
        await eve.join(TEAM["channel"])
        agent.ask("spawn_agent", role="fixer", text="mend", timeout=1)
        _, msgid = await asked(eve)
        reply(eve, msgid, hired("spark-Mallory", "fixer"))
        assert "has not answered within 1 s" in (await agent.line())["error"]


async def test_what_cannot_be_asked_for_is_said(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, member(home), {"nick": "spark-lone", "playbook": playbook(home, [])})
    async with running(config, NICK) as daemon, wire() as agent:
        wrong = await agent.call("spawn_agent", role="king", text="rule")
        assert wrong["error"].startswith("'king' is no role; there are implementer, test_runner")
        late = await agent.call("spawn_agent", role="fixer", text="mend", timeout=0.05)
        assert "spark-team-shop has not answered within 0.05 s; what you asked for stands in #work" in late["error"]
        for number in range(4):
            agent.ask("spawn_agent", str(number), role="fixer", text="mend")
        many = await agent.call("spawn_agent", "5", role="fixer", text="mend")
        assert many["error"] == "4 such requests wait already"
        await daemon.transport.part_channel(TEAM["channel"])
    async with running(config, "spark-lone") as lone:
        with pytest.raises(Exception, match="you are in no team"):
            await asyncio.wait_for(lone.service.spawn_agent("fixer", "mend", None), PATIENCE)
