"""Agents that ask, on real servers: who may answer, what they are told, and what outlives a crash and a split."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from culture.cli.agents.agent_login import ensure_account
from culture.protocol.vocabulary import AgentState, UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK, answered, held
from tests.clients.shared.test_reporting import fact
from tests.skills.ledger.test_receipts import CAPS
from tests.support.agents import agents_yaml, playbook, process, prompts, running
from tests.support.client import Client, connected, registered
from tests.support.mesh import mesh
from tests.support.people import PASSWORD, accounts_of, authenticate, come_in, plain, verifier
from tests.support.servers import serving
from tests.support.waiting import until

TRUST: dict[str, Any] = {"trust": {"humans": "always", "agents": "never"}}
CLIENT = "python3 -P -m culture.clients.shared.skill.irc_client 2>/dev/null"
ASK = f"{CLIENT} --json ask '#general' --options yes/no/abort 'Delete it?'"
RULES = [
    {"when": "clean", "steps": [{"run": {"command": ASK, "timeout": 60}}, {"say": "{code} {output}"}]},
    {
        "when": "explain",
        "steps": [
            {"run": {"command": ASK, "timeout": 60}},
            {"run": f"{CLIENT} ask --again q1 --reply '47 files'"},
            {"say": "{code} {output}"},
        ],
    },
]
RULE = {"post_output": "always"}


async def told(client: Client, text: str) -> str:
    """The notice of the agent that has these words."""
    notice = await client.expect(
        "NOTICE", client.nick, where=lambda each: each.source.startswith(f"{NICK}!") and text in each.params[1]
    )
    return notice.params[1]


def outcome(said: str) -> dict[str, Any]:
    """What the command line printed, behind its exit code."""
    code, _, data = said.partition(" ")
    return {"code": int(code), **json.loads(data)}


@asynccontextmanager
async def bob_the_bot(port: int) -> AsyncIterator[Client]:
    """An agent, as the server knows it."""
    async with registered(port, "spark-bob") as bob:
        await bob.ask("MODE spark-bob +B")
        await bob.join("#general")
        yield bob


@pytest.mark.fault("F2")
@pytest.mark.requirement("J11", "J13", "J15")
async def test_a_person_answers_and_an_agent_does_not(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, RULES), **RULE}, rules=TRUST)
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        await ori.join("#alerts")
        async with bob_the_bot(ircd.port) as bob:
            ori.send(f"PRIVMSG #general :@{NICK} clean")
            assert await answered(ori, "#general") == "[QUESTION] Delete it?"
            assert await answered(ori, "#general") == f"Waiting for response. Reply with: @{NICK} yes/no/abort"
            assert await answered(ori, "#alerts") == f'[QUESTION] {NICK} needs input: "Delete it?"'
            await until(lambda: daemon.presence.state is AgentState.ASKING)
            bob.send(f"PRIVMSG #general :@{NICK} yes")
            assert "only people may answer" in await told(bob, "q1")
            ori.send(f"PRIVMSG #general :@{NICK} yes but not today")
            assert "cannot tell" in await told(ori, "q1")
            ori.send(f"PRIVMSG #general :@{NICK} yes, go ahead")
            end = outcome(await answered(ori, "#general"))
    assert (end["code"], end["outcome"], end["by"]) == (0, "ANSWERED", "spark-ori")
    assert (end["class"], end["human_confirmed"], end["question"]) == ("human", False, "q1")


@pytest.mark.requirement("J12", "J18", "J20", "L13")
async def test_a_blocked_agent_answers_who_asks_back(ircd: IRCd, home: Path) -> None:
    agent = {"nick": NICK, "playbook": playbook(home, RULES), **RULE}
    config = agents_yaml(home, ircd.port, agent, {"nick": "spark-bob"}, rules=TRUST)
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK):
        await ori.join("#general")
        async with bob_the_bot(ircd.port) as bob:
            ori.send(f"PRIVMSG #general :@{NICK} explain")
            assert (await answered(bob, "#general")).startswith("[QUESTION]")
            bob.send(f"PRIVMSG #general :@{NICK} which files?")
            await answered(bob, "#general")
            assert await answered(bob, "#general") == "[ANSWER] 47 files"
            ori.send(f"PRIVMSG #general :@{NICK} no")
            assert await answered(bob, "#general") == "4 no"


@pytest.mark.fault("F1")
@pytest.mark.requirement("J16")
async def test_silence_pauses_the_agent_and_a_late_answer_is_refused(ircd: IRCd, home: Path) -> None:
    rules = {"trust": {"timeout": 0.5}}
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, RULES), **RULE}, rules=rules)
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        await ori.join("#alerts")
        ori.send(f"PRIVMSG #general :@{NICK} clean")
        alert = await ori.expect("PRIVMSG", "#alerts", where=lambda each: "[TIMEOUT]" in each.params[1])
        assert alert.params[1] == f'[TIMEOUT] {NICK} got no answer: "Delete it?"; it is paused'
        end = outcome(await answered(ori, "#general"))
        assert (end["code"], end["outcome"], end["text"], end["action"]) == (3, "TIMED_OUT", None, "pause")
        assert daemon.notes.paused
        ori.send(f"PRIVMSG #general :@{NICK} yes")
        assert "I am paused since then" in await told(ori, "too late for q1")
        # Perhaps it is meant for something else: the agent reads it, and that it is no answer.
        # The task itself is given again after resume.
        assert [mail.remark for mail in daemon.inbox.unread()] == [
            "",
            "your question q1 had an end before, and this changes nothing of it",
        ]


@pytest.mark.parametrize("place", ["#general", "spark-bob"])
async def test_who_asks_another_agent_waits_no_longer_when_that_one_gives_up(
    ircd: IRCd, home: Path, place: str
) -> None:
    ask = f"{CLIENT} --json ask '{place}' --timeout 60 '@spark-bob which flags?'"
    mine = playbook(
        home, [{"when": "go", "steps": [{"run": {"command": ask, "timeout": 60}}, {"say": "{code} {output}"}]}]
    )
    theirs = playbook(home / "bob", [{"when": "flags", "steps": held(home)}])
    agents = ({"nick": NICK, "playbook": mine, **RULE}, {"nick": "spark-bob", "playbook": theirs})
    config = agents_yaml(home, ircd.port, *agents)
    async with (
        registered(ircd.port, "spark-ori") as ori,
        running(config, NICK) as daemon,
        running(config, "spark-bob") as bob,
    ):
        await ori.join("#general")
        ori.send(f"PRIVMSG {NICK} :go")
        await until(lambda: bob.work.busy and daemon.questions.waiting > 0)
        ori.send("PRIVMSG spark-bob :@spark-bob abort")
        end = outcome(await answered(ori, "spark-ori"))
    assert (end["code"], end["outcome"], end["by"]) == (5, "ABORTED", "spark-bob")
    assert end["text"].endswith("a person has aborted it")


@pytest.mark.fault("F15")
async def test_a_webhook_that_is_down_hides_no_question(ircd: IRCd, home: Path) -> None:
    rules = {**TRUST, "webhooks": {"url": "http://127.0.0.1:9/hook"}}
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, RULES), **RULE}, rules=rules)
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        await ori.join("#alerts")
        ori.send(f"PRIVMSG #general :@{NICK} clean")
        assert await answered(ori, "#general") == "[QUESTION] Delete it?"
        assert await answered(ori, "#alerts") == f'[QUESTION] {NICK} needs input: "Delete it?"'
        await until(lambda: daemon.webhook.status()["failures"] > 0)
        status = await daemon.service.status()
        assert (status["state"], status["questions"]) == ("asking", 1)
        ori.send(f"PRIVMSG #general :@{NICK} yes")
        assert outcome(await heard_end(ori))["outcome"] == "ANSWERED"


@pytest.mark.fault("F1")
async def test_silence_aborts_the_task_where_the_rules_say_so(ircd: IRCd, home: Path) -> None:
    rules = {"trust": {"timeout": 0.5, "timeout_action": "abort"}}
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, RULES), **RULE}, rules=rules)
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} clean")
        await answered(ori, "#general")
        await until(lambda: not daemon.questions.open and not daemon.work.busy)
        # Where the call was cut off before it had its answer, that is a prompt of its own.
        assert daemon.inbox.journal(2)[0][3] == "aborted"


@pytest.mark.requirement("J14")
async def test_an_operator_s_word_reaches_the_agent_after_another_s(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, RULES), **RULE}, rules=TRUST)
    async with registered(ircd.port, "spark-ori") as ori, registered(ircd.port, "spark-dan") as dan:
        await ori.join("#general")
        await dan.join("#general")
        async with running(config, NICK):
            ori.send(f"PRIVMSG #general :@{NICK} clean")
            await answered(ori, "#general")
            dan.send(f"PRIVMSG #general :@{NICK} yes")
            assert outcome(await heard_end(ori))["by"] == "spark-dan"
            ori.send(f"PRIVMSG #general :@{NICK} no")
            assert "Your word goes above it" in await told(ori, "q1")
            assert (await answered(ori, "#general")) == "heard: no"
    told_agent = prompts(home / "work")[-1]
    assert 'overrules the answer to your question q1, "' in told_agent
    assert 'it was "yes" by spark-dan, and is "no" by spark-ori now' in told_agent


async def heard_end(client: Client) -> str:
    """What the agent said of the outcome."""
    said = await client.expect("PRIVMSG", "#general", where=lambda each: '"outcome"' in each.params[1])
    return said.params[1]


@pytest.mark.parametrize("bound", [60.0, 0.05])
async def test_abort_as_the_answer_to_a_question_aborts_its_task(ircd: IRCd, home: Path, bound: float) -> None:
    """Also of a turn that is over when the answer comes: the ledger has it as aborted, and nobody as finished."""
    agent = {"nick": NICK, "playbook": playbook(home, RULES), "ask_bound": bound, **RULE}
    config = agents_yaml(home, ircd.port, agent, rules=TRUST)
    async with registered(ircd.port, "spark-ori", CAPS) as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        await ori.join("#alerts")
        ori.send(f"PRIVMSG #general :@{NICK} clean")
        await ori.expect("PRIVMSG", "#general", f"Waiting for response. Reply with: @{NICK} yes/no/abort")
        if bound < 1:
            await fact(ori, "task", lambda value: value.get("outcome") == "done")
        ori.send(f"PRIVMSG #general :@{NICK} abort q1")
        task = (await fact(ori, "task", lambda value: value.get("outcome") == "aborted"))[2]
        assert task["text"] == "clean"
        assert daemon.inbox.journal(5)[0][3] == "aborted"
        assert bound < 1 or not [line for line in ori.seen if "[COMPLETE]" in line.params[-1]]


@pytest.mark.fault("F8")
async def test_killed_while_it_waits_it_still_has_the_question_and_gets_the_answer(ircd: IRCd, home: Path) -> None:
    rules = [
        # Killed in the middle, the agent only hears of the answer; it does not ask again.
        {"when": "answers your question", "steps": [{"say": "so it is settled"}]},
        {"when": "clean", "steps": [{"run": {"command": ASK, "timeout": 60}}, {"say": "{code} {output}"}]},
    ]
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules), **RULE}, rules=TRUST)
    async with registered(ircd.port, "spark-ori", "message-tags echo-message") as ori:
        await ori.join("#general")
        async with process(NICK, home) as daemon:
            await ori.expect("JOIN", "#general")
            ori.send(f"PRIVMSG #general :@{NICK} clean")
            await ori.expect("PRIVMSG", "#general", "[QUESTION] Delete it?")
            await ori.expect("PRIVMSG", "#general", f"Waiting for response. Reply with: @{NICK} yes/no/abort")
            await daemon.kill()
            # Said while nobody is there to hear it.
            ori.send(f"PRIVMSG #general :@{NICK} yes q1")
            msgid = (await ori.expect("PRIVMSG", "#general", f"@{NICK} yes q1")).tags["msgid"]
            await daemon.start()
            assert await told(ori, "q1") == 'q1 is answered: "yes".'
            assert await answered(ori, "#general") == "so it is settled"
            assert await daemon.stop() == 0
    last = prompts(home / "work")[-1]
    assert f"msgid: {msgid}" in last
    assert 'answers your question q1, "Delete it?": ANSWERED' in last
    assert len([each for each in ori.seen if each.params[-1] == "[QUESTION] Delete it?"]) == 1


@pytest.mark.fault("F8")
async def test_asked_again_after_a_kill_the_same_question_is_waited_for(ircd: IRCd, home: Path) -> None:
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, RULES), **RULE}, rules=TRUST)
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with process(NICK, home) as daemon:
            await ori.expect("JOIN", "#general")
            ori.send(f"PRIVMSG #general :@{NICK} clean")
            await ori.expect("PRIVMSG", "#general", f"Waiting for response. Reply with: @{NICK} yes/no/abort")
            await daemon.kill()
            await daemon.start()
            await ori.expect("JOIN", "#general")
            ori.send(f"PRIVMSG #general :@{NICK} yes")
            end = outcome(await heard_end(ori))
            assert (end["question"], end["outcome"]) == ("q1", "ANSWERED")
            assert await daemon.stop() == 0
    assert len([each for each in ori.seen if each.params[-1] == "[QUESTION] Delete it?"]) == 1


@pytest.mark.fault("E35")
async def test_an_answer_for_which_nobody_waits_any_more_is_a_message(ircd: IRCd, home: Path) -> None:
    rules = [
        {"when": "answers your question", "steps": [{"say": "so it is settled"}]},
        {"when": "clean", "steps": [{"run": f"timeout 1 {ASK}"}, {"say": "no time to wait"}]},
    ]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules), **RULE}, rules=TRUST)
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} clean")
        await ori.expect("PRIVMSG", "#general", "no time to wait")
        await until(lambda: daemon.questions.waiting == 0)
        assert [question.id for question in daemon.questions.open] == ["q1"]
        ori.send(f"PRIVMSG #general :@{NICK} compact")
        await told(ori, "shorten my context")
        await until(lambda: not daemon.work.busy)
        ori.send(f"PRIVMSG #general :@{NICK} yes")
        assert await answered(ori, "#general") == "so it is settled"
        assert daemon.questions.open == []
    assert '(you have asked and wait for an answer: q1 "Delete it?")' in prompts(home / "work")[-1]


@pytest.mark.fault("F3")
async def test_with_accounts_of_people_only_their_logins_are_people(home: Path, tmp_path: Path) -> None:
    """The agent's own shell may open a connection under its owner's name; it is not logged in."""
    folder = tmp_path / "server"
    folder.mkdir()
    accounts_of(folder, "spark-ori")
    async with serving(folder) as ircd:
        config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, RULES), **RULE}, rules=TRUST)
        async with connected(ircd.port) as ori, running(config, NICK):
            ori.send("CAP LS 302")
            assert (await authenticate(ori, "PLAIN", plain("spark-ori", PASSWORD))).verb == "903"
            await come_in(ori, "spark-ori")
            ori.nick = "spark-ori"
            await ori.join("#general")
            ori.send(f"PRIVMSG #general :@{NICK} clean")
            await answered(ori, "#general")
            async with registered(ircd.port, "spark-ori2") as shell:
                await shell.join("#general")
                shell.send(f"PRIVMSG #general :@{NICK} yes")
                assert "only people who are logged in may answer" in await told(shell, "q1")
                await shell.ask(f"PRIVMSG {NICK} :yes q1")
            ori.send(f"PRIVMSG #general :@{NICK} yes")
            end = outcome(await heard_end(ori))
            assert (end["by"], end["account"], end["human_confirmed"]) == ("spark-ori", "spark-ori", True)


async def test_a_rule_for_logins_counts_no_answer_by_local_uid(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    AccountStore(folder / "accounts.json", "spark").add(
        new_account("ori", UserClass.HUMAN, user=str(os.getuid()), verifier=verifier())
    )
    rules = {"trust": {"humans": "confirmed", "agents": "never"}}
    async with serving(folder) as ircd:
        config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, RULES), **RULE}, rules=rules)
        async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
            await ori.join("#general")
            ori.send(f"PRIVMSG #general :@{NICK} clean")
            await answered(ori, "#general")
            ori.send(f"PRIVMSG #general :@{NICK} yes")
            refusal = await told(ori, "q1")
            assert "only people who have logged in may answer" in refusal and "`culture account token`" in refusal
            assert [question.id for question in daemon.questions.open] == ["q1"]
            async with connected(ircd.port) as phone:
                phone.send("CAP LS 302")
                assert (await authenticate(phone, "PLAIN", plain("ori", PASSWORD))).verb == "903"
                await come_in(phone, "spark-ori")
                phone.send(f"PRIVMSG #general :@{NICK} yes")
                end = outcome(await heard_end(ori))
            assert (end["by"], end["account"], end["human_confirmed"]) == ("spark-ori", "ori", True)


@pytest.mark.fault("F9")
async def test_an_answer_from_the_other_side_of_a_split_arrives_once(home: Path, tmp_path: Path) -> None:
    async with mesh(tmp_path, ["spark", "thor"], [("thor", "spark")]) as servers:
        await servers.linked()
        port = servers.members["spark"].port
        config = agents_yaml(home, port, {"nick": NICK, "playbook": playbook(home, RULES), **RULE}, rules=TRUST)
        async with (
            servers.client("spark", "spark-ori") as ori,
            servers.client("thor", "thor-ada") as ada,
            running(config, NICK) as daemon,
        ):
            await ori.join("#general")
            await ada.join("#general")
            ori.send(f"PRIVMSG #general :@{NICK} clean")
            await ada.expect("PRIVMSG", "#general", "[QUESTION] Delete it?")
            between = servers.proxy("thor", "spark")
            between.cut()
            await ada.expect("QUIT", where=lambda each: each.source.startswith(NICK))
            ada.send(f"PRIVMSG #general :@{NICK} yes")
            await ada.sync()
            assert len(daemon.questions.open) == 1
            between.heal()
            end = outcome(await heard_end(ori))
            assert (end["by"], end["outcome"]) == ("thor-ada", "ANSWERED")
            assert daemon.questions.recent[0].id == "q1"
            await until(lambda: not daemon.work.busy)
            assert daemon.inbox.counts() == (0, 0)


async def test_bots_that_registered_themselves_have_no_vote(tmp_path: Path, home: Path) -> None:
    """Three of them came before the question, with accounts and +B, and were three of four voters."""
    async with serving(tmp_path / "server", self_registration="inside") as ircd, AsyncExitStack() as stack:
        store = ircd.parts.accounts
        store.add(new_account("ori", UserClass.HUMAN, verifier=verifier()))
        store.add(new_account("rover", UserClass.AGENT, always_on=False))
        ensure_account(NICK, store)
        bots = []
        for number in range(3):
            bot = await stack.enter_async_context(registered(ircd.port, f"spark-bot{number}", "message-tags"))
            bot.send(f"REGISTER bot{number} * correct-horse-battery")
            await bot.expect("REGISTER", "SUCCESS")
            await bot.ask(f"MODE spark-bot{number} +B")
            await bot.join("#general")
            bots.append(bot)
        rover = await stack.enter_async_context(connected(ircd.port))
        rover.send(f"PASS :rover:{store.add_token('rover', 'test')}")
        await rover.register("spark-rover")
        await rover.join("#general")
        config = agents_yaml(home, ircd.port, {"nick": NICK, "trust": {"agents": "vote"}})
        async with running(config, NICK) as daemon:
            asking = asyncio.create_task(daemon.questions.ask("#general", "Delete it?", 60, ("yes", "no")))
            await until(lambda: bool(daemon.questions.open and daemon.questions.open[0].msgids))
            [question] = daemon.questions.open
            assert question.electorate == ("spark-rover",)
            for bot in bots:
                bot.send(f"PRIVMSG #general :@{NICK} yes q1")
            rover.send(f"PRIVMSG #general :@{NICK} no q1")
            answer = await asking
            assert (answer.outcome, answer.by, answer.kind) == ("DENIED", "spark-rover", "agent")
            for bot in bots:
                assert "you are a bot" in await told(bot, "q1")
