"""``culture questions`` and ``culture answer``."""

import json
import signal
import sqlite3
import time
from contextlib import closing
from typing import Any

import pytest

from tests.cli.agents.conftest import NICK, Machine
from tests.support.agents import playbook
from tests.support.client import registered

ASK = "python3 -P -m culture.clients.shared.skill.irc_client ask '#general' 'Which flags?' 2>/dev/null"
RULES = [{"when": "build", "steps": [{"run": {"command": ASK, "timeout": 60}}, {"say": "{code} {output}"}]}]


def asking(machine: Machine, **rules: Any) -> dict[str, Any]:
    """An agent that asks which flags to build with, and says what it heard."""
    machine.agents({"nick": NICK, "playbook": playbook(machine.home, RULES), "post_output": "always", **rules})
    return rules


@pytest.mark.requirement("J13", "J15")
async def test_a_person_sees_a_question_and_answers_it(machine: Machine) -> None:
    asking(machine, trust={"agents": "never", "timeout": 600})
    async with registered(machine.port, "spark-dan") as dan:
        await dan.join("#general")
        assert (await machine.run("start", NICK)).code == 0
        assert (await machine.run("questions")).out == "No agent waits for an answer.\n"
        dan.send(f"PRIVMSG #general :@{NICK} build")
        await dan.expect("PRIVMSG", "#general", "[QUESTION] Which flags?")
        heading, row = (await machine.run("questions", NICK)).out.splitlines()
        assert heading.split()[:4] == ["AGENT", "ID", "AGE", "LEFT"]
        assert row.split()[:2] == [NICK, "q1"] and row.endswith("people          Which flags?")
        (listed,) = json.loads((await machine.run("questions", "--all", "--json")).out)
        assert (listed["kind"], listed["timeout_action"], listed["electorate"]) == ("open", "pause", [])
        whole = (await machine.run("questions", "q1")).out.splitlines()
        assert whole[0].startswith(f"{NICK} q1, asked ") and whole[-1] == f"Answer with: culture answer {NICK} q1 TEXT"
        assert "  Which flags?" in whole
        assert (await machine.run("questions", NICK, "q9")).code == 1
        assert (await machine.run("answer", NICK, "q9", "yes")).code == 4
        assert (await machine.run("answer", NICK, "7", "yes")).code == 2
        done = await machine.run("answer", NICK, "q1", "with O2")
        assert (done.code, done.out) == (0, f'{NICK}: q1 is answered: "with O2".\n')
        assert (await dan.expect("PRIVMSG", "#general")).params[1] == "0 with O2"
        late = await machine.run("answer", NICK, "q1", "with O3")
        assert late.code == 4 and "already answered by spark-ori" in late.out
        (closed,) = json.loads((await machine.run("questions", "--closed", "--json")).out)
        assert closed["answer"]["by"] == "spark-ori"


@pytest.mark.fault("F2")
async def test_an_agent_cannot_answer_from_its_shell(machine: Machine) -> None:
    machine.shell.environment["CULTURE_NICK"] = NICK
    for words in (("answer", NICK, "q1", "yes"), ("questions", "deny", "--all")):
        refused = await machine.run(*words)
        assert refused.code == 4 and f"you are {NICK}" in refused.err


@pytest.mark.fault("F13")
async def test_two_hundred_questions_are_listed_and_denied(machine: Machine) -> None:
    asking(machine, trust={"agents": "never"})
    assert (await machine.run("start", NICK)).code == 0
    assert (await machine.run("stop", NICK)).code == 0
    now = time.time()
    row = "INSERT INTO questions (place, text, options, tool, electorate, task, asked, deadline, action, msgids)"
    with closing(sqlite3.connect(machine.home / "inbox" / f"{NICK}.db")) as records, records:
        for number in range(200):
            asked = now - 7200 + number * 30
            values = (
                "#general",
                f"question {number}?",
                '["yes", "no"]',
                "",
                "[]",
                "",
                asked,
                now + 9000,
                "deny",
                '["m"]',
            )
            records.execute(f"{row} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    # Also while the agent rests.
    assert len((await machine.run("questions")).out.splitlines()) == 201
    assert (await machine.run("start", NICK)).code == 0
    assert (await machine.status())["questions"] == 200
    oldest = (await machine.run("questions")).out.splitlines()[1]
    assert oldest.split()[1:3] == ["q1", "2h"] and oldest.endswith("question 0?")
    assert (await machine.run("questions", "deny")).code == 2
    denied = await machine.run("questions", "deny", "--older", "1h")
    assert denied.code == 0, denied.out + denied.err
    left = json.loads((await machine.run("questions", "--json")).out)
    assert 75 <= len(left) <= 85
    assert (await machine.run("questions", "deny", NICK)).code == 0
    assert (await machine.run("questions")).out == "No agent waits for an answer.\n"
    closed = json.loads((await machine.run("questions", "--closed", "--json")).out)
    assert {each["answer"]["outcome"] for each in closed} == {"DENIED"}
    assert len(closed) == 200


async def test_questions_without_a_server_are_an_error(machine: Machine) -> None:
    """What was asked before is shown; that nobody can answer it is no success."""
    asking(machine, trust={"agents": "never", "timeout": 600})
    # Without it the command would look at the default port, where a server of whoever runs the tests may listen.
    machine.shell.write(json.dumps({"name": "spark", "listen": [{"port": machine.port}]}))
    async with registered(machine.port, "spark-dan") as dan:
        await dan.join("#general")
        assert (await machine.run("start", NICK)).code == 0
        dan.send(f"PRIVMSG #general :@{NICK} build")
        await dan.expect("PRIVMSG", "#general", "[QUESTION] Which flags?")
        assert (await machine.run("questions")).code == 0
    machine.server.signal(signal.SIGTERM)
    assert await machine.server.ended() == 0
    shown = await machine.run("questions")
    assert shown.code == 1 and "q1" in shown.out
    assert f"no server answers at 127.0.0.1 port {machine.port}" in shown.err and "`culture up -d`" in shown.err
    assert (await machine.run("stop", NICK)).code == 0
    told = await machine.run("questions", "--json")
    assert told.code == 1 and [each["id"] for each in json.loads(told.out)] == ["q1"]
