"""Who calls an agent sees how far the message has come, also across servers, kills and outages; the ledger has it."""

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from culture.cli.agents.questions import render_table
from culture.clients.shared import reporting
from culture.clients.shared.assembly import assemble
from culture.clients.shared.errors import WrongConfiguration
from culture.config import paths
from culture.config.model import Listen
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK
from tests.federation.meshes import linked
from tests.skills.ledger.test_receipts import CAPS, is_receipt, said, told
from tests.support.agents import agents_yaml, playbook, running
from tests.support.client import Client, registered
from tests.support.clock import sleep
from tests.support.fleet import agent_at
from tests.support.ports import reserved
from tests.support.servers import serving
from tests.support.waiting import PATIENCE, until

STATES = ["stored", "delivered", "injected", "answered"]


async def states(client: Client, msgid: str, count: int) -> list[str]:
    """The first receipts that come for a message."""
    found: list[str] = []
    while len(found) < count:
        got = await client.expect("TAGMSG", where=is_receipt)
        if got.tags["+draft/reply"] == msgid:
            found.append(got.tags["agentirc.dev/receipt"])
    return found


async def facts(client: Client, what: str) -> list[tuple[str, str, dict[str, Any]]]:
    lines = [line for line in await client.ask(f"LEDGER GET {what}") if line.verb == "LEDGER"]
    return [(line.params[0], line.params[2], json.loads(line.tags["+agentirc.dev/fact"])) for line in lines]


async def fact(
    client: Client, what: str, where: Callable[[dict[str, Any]], bool] = lambda value: True
) -> tuple[str, str, dict[str, Any]]:
    """Wait for one of which this is so: the daemon tells the ledger when it comes to it."""
    found: list[tuple[str, str, dict[str, Any]]] = []
    try:
        async with asyncio.timeout(PATIENCE):
            while not (those := [each for each in found if where(each[2])]):
                await sleep(0.02)
                found = await facts(client, what)
    except TimeoutError:
        raise AssertionError(f"there is no such fact {what}, but {found}") from None
    return those[0]


@asynccontextmanager
async def person(port: int, nick: str = "spark-ori") -> AsyncIterator[Client]:
    async with registered(port, nick, CAPS) as client:
        await client.join("#general")
        yield client


async def test_a_mention_and_a_private_message_come_through_all_states(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with person(ircd.port) as ori, running(config, NICK):
        msgid = await said(ori, "#general", f"@{NICK} build it")
        assert await states(ori, msgid, 4) == STATES
        msgid = await said(ori, NICK, "psst, a secret")
        assert await states(ori, msgid, 4) == STATES
        nick, key, spent = await fact(ori, "spend")
        assert (nick, spent["outcome"]) == (NICK, "done") and key.startswith("turn-")
        assert (await fact(ori, "state"))[2]["state"] in ("idle", "working")
        assert "secret" not in str(await facts(ori, "*"))


@pytest.mark.parametrize("private", [False, True])
async def test_the_same_across_a_link(tmp_path: Path, home: Path, private: bool) -> None:
    async with linked(tmp_path, ("spark", "thor"), [("spark", "thor")]) as made:
        config = agents_yaml(home, made["spark"].port, {"nick": NICK, "playbook": playbook(home, [])})
        ada = await made.client("thor-ada", "#general", caps=CAPS)
        async with running(config, NICK):
            await made.whole()
            msgid = await said(ada, NICK if private else "#general", f"@{NICK} build it")
            assert sorted(await states(ada, msgid, 4)) == sorted(STATES)
            held = [line.tags for line in ada.seen if is_receipt(line) and "!" in line.source]
            assert [tags["agentirc.dev/receipt"] for tags in held] == STATES[1:]
            assert (await fact(ada, f"receipt * key={msgid}/answered"))[0] == NICK


@pytest.mark.fault("E10")
async def test_for_a_paused_agent_it_is_delivered_and_the_sender_told(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with person(ircd.port) as ori, running(config, NICK) as daemon:
        await said(ori, "#general", f"@{NICK} pause")
        await until(lambda: daemon.notes.paused)
        msgid = await said(ori, "#general", f"@{NICK} build it")
        notice = await ori.expect("NOTICE", "spark-ori", where=lambda line: "is kept" in line.params[1])
        assert "paused" in notice.params[1]
        while not [line for line in ori.seen if is_receipt(line) and line.tags["+draft/reply"] == msgid][1:]:
            await ori.receive()
        await until(lambda: daemon.reporting._reports.first() is None)
        await ori.sync()
        seen = [line.tags for line in ori.seen if is_receipt(line) and line.tags["+draft/reply"] == msgid]
        assert sorted(tags["agentirc.dev/receipt"] for tags in seen) == ["delivered", "stored"]
        assert await fact(ori, "state", lambda value: value["state"] == "paused")
        ori.send(f"PRIVMSG #general :@{NICK} resume")
        assert await states(ori, msgid, 2) == ["injected", "answered"]


async def test_after_kill_9_between_two_states_the_rest_comes(ircd: IRCd, home: Path) -> None:
    """Killed in the turn: the next run takes the message up again, and injected is said once."""
    rules = [{"when": "build", "steps": [{"wait": {"until": str(home / "go"), "timeout": 50}}, {"say": "done"}]}]
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    agent = agent_at(NICK, home, Path(os.environ["XDG_RUNTIME_DIR"]))
    daemon = agent.daemon
    async with person(ircd.port) as ori, agent.running():
        await ori.expect("JOIN", where=lambda line: line.source.startswith(NICK))
        msgid = await said(ori, "#general", f"@{NICK} build it")
        assert await states(ori, msgid, 3) == STATES[:3]
        await daemon.kill()
        (home / "go").touch()
        await daemon.start()
        assert await states(ori, msgid, 1) == ["answered"]
        assert await daemon.stop() == 0
        assert await fact(ori, "state", lambda value: value["state"] == "stopped")


async def test_what_was_not_said_before_the_kill_is_said_after_it(ircd: IRCd, home: Path) -> None:
    """The states are noted with what they are of: who could not tell them any more tells them next time."""
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with person(ircd.port) as ori:
        async with running(config, NICK) as daemon:
            await daemon.reporting.stop()  # as if each of its lines came too late
            msgid = await said(ori, "#general", f"@{NICK} build it")
            await ori.expect("PRIVMSG", "#general", where=lambda line: line.source.startswith(NICK))
            await until(lambda: not daemon.work.busy)
        with sqlite3.connect(paths.inbox_file(NICK)) as file:
            waiting = file.execute("SELECT text FROM reports WHERE kind = 'receipt' ORDER BY number").fetchall()
        assert [state for (state,) in waiting] == STATES[1:]
        async with running(config, NICK):
            assert [(await told(ori))[1:] for _ in STATES[1:]] == [(msgid, state) for state in STATES[1:]]


async def test_what_happens_without_a_server_is_told_when_it_is_back(home: Path, tmp_path: Path) -> None:
    rules = [{"when": "build", "steps": [{"wait": {"until": str(home / "go"), "timeout": 50}}]}]
    folder = tmp_path / "server"
    async with AsyncExitStack() as stack:
        port = stack.enter_context(reserved())
        config = agents_yaml(home, port, {"nick": NICK, "playbook": playbook(home, rules)})
        async with serving(folder, listen=(Listen(port=port),)), person(port) as ori:
            daemon = await stack.enter_async_context(running(config, NICK))
            msgid = await said(ori, "#general", f"@{NICK} build it")
            assert await states(ori, msgid, 3) == STATES[:3]
        await until(lambda: not daemon.transport.connected)
        (home / "go").touch()
        await until(lambda: not daemon.work.busy)
        async with serving(folder, listen=(Listen(port=port),)), person(port) as ori:
            nick, key, _ = await fact(ori, "spend")
            assert (nick, key) == (NICK, "turn-1")


async def test_many_are_told_together_and_none_twice(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with person(ircd.port) as ori, running(config, NICK):
        ids = [await said(ori, "#general", f"@{NICK} {number}") for number in range(40)]
        async with asyncio.timeout(30):
            while len(_told(ori)) < 3 * len(ids):
                await ori.receive()
        await ori.sync()
        found = _told(ori)
        assert len(found) == len(set(found)) == 3 * len(ids)
        assert {msgid for msgid, _ in found} == set(ids)


def _told(client: Client) -> list[tuple[str, str]]:
    lines = [line for line in client.seen if is_receipt(line) and "!" in line.source]
    return [(line.tags["+draft/reply"], line.tags["agentirc.dev/receipt"]) for line in lines]


async def test_what_it_works_on_is_a_fact_unless_that_was_said_in_a_closed_place(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "build", "steps": [{"wait": {"until": str(home / "go"), "timeout": 50}}, {"say": "done"}]}]
    agent = {"nick": NICK, "playbook": playbook(home, rules), "channels": ["#general", "#closed"]}
    config = agents_yaml(home, ircd.port, agent)
    async with person(ircd.port) as ori, AsyncExitStack() as stack:
        await ori.join("#closed")
        await ori.ask("MODE #closed +s")
        daemon = await stack.enter_async_context(running(config, NICK))
        await said(ori, "#general", f"@{NICK} build the east wing, {'please ' * 40}")
        _, key, task = await fact(ori, "task")
        short = f"build the east wing, {'please ' * 40}"[:80]
        assert key == "turn-1" and task["ended"] is None
        assert (task["place"], task["by"], task["text"]) == ("#general", "spark-ori", f"{short}…")
        _, _, state = await fact(ori, "state", lambda value: value["state"] == "working")
        assert state["task"] == f"{short}…"
        (home / "go").touch()
        _, key, task = await fact(ori, "task", lambda value: value["ended"] is not None)
        assert (key, task["outcome"]) == ("turn-1", "done")
        assert "task" not in (await fact(ori, "state", lambda value: value["state"] == "idle"))[2]
        (home / "go").unlink()
        await said(ori, "#closed", f"@{NICK} build the secret wing")
        _, key, task = await fact(ori, "task", lambda value: value["ended"] is None)
        assert key == "turn-2" and not {"place", "text", "by"} & task.keys()
        assert (await fact(ori, "state", lambda value: value["state"] == "working"))[2]["task"] == "(private)"
        await until(lambda: daemon.reporting._reports.first() is None)
        assert "secret" not in str([await facts(ori, "*"), await ori.ask(f"METADATA {NICK} LIST")])


async def test_how_many_messages_wait_is_told_but_not_for_each_of_them(
    ircd: IRCd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "COUNTED_EVERY", 0.5)
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with person(ircd.port) as ori, running(config, NICK) as daemon:
        told: list[Any] = []
        put = daemon.reporting._put_state

        async def watched(state: Any, counts: dict[str, Any]) -> None:
            told.append(counts["unread"])
            await put(state, counts)

        monkeypatch.setattr(daemon.reporting, "_put_state", watched)
        await said(ori, "#general", f"@{NICK} pause")
        await until(lambda: daemon.notes.paused)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(60):
            ori.send(f"PRIVMSG #general :@{NICK} {number}")
        await until(lambda: told[-1:] == [60])
        assert len(told) <= 5 + (loop.time() - began) / reporting.COUNTED_EVERY
        _, _, state = await fact(ori, "state", lambda value: value["unread"] == 60)
        assert (state["state"], state["stale"]) == ("paused", 0)


async def test_questions_and_alerts_are_facts_without_what_is_private(ircd: IRCd, home: Path) -> None:
    agent = {"nick": NICK, "playbook": playbook(home, []), "trust": {"agents": "never"}}
    config = agents_yaml(home, ircd.port, agent)
    async with person(ircd.port) as ori, running(config, NICK) as daemon:
        asking = asyncio.create_task(daemon.questions.ask("#general", "may I deploy?", 30, ("yes", "no")))
        nick, key, question = await fact(ori, "question")
        assert (nick, key, question["open"], question["text"]) == (NICK, "q1", True, "may I deploy?")
        assert (question["options"], question["who"]) == (["yes", "no"], "people")
        ori.send(f"PRIVMSG #general :@{NICK} yes")
        await asking
        _, _, question = await fact(ori, "question", lambda value: not value["open"])
        assert (question["outcome"], question["by"]) == ("ANSWERED", "spark-ori")
        assert (question["verified"], question["verified_why"]) == ("unknown", "spark-ori was not logged in")
        [closed] = daemon.questions.recent
        assert closed.answer is not None and question["answer"] == closed.answer.msgid
        await until(lambda: daemon.questions.as_data([closed])[0]["answer"].get("verified") == "unknown")
        assert "spark-ori, unverified" in render_table(
            [{"nick": NICK, **daemon.questions.as_data([closed])[0]}], datetime.now(UTC)
        )
        daemon.webhook.fire("agent_error", f"{NICK} fell over", place="#general")
        # People were called to the question, too.
        _, key, alert = await fact(ori, "alert", lambda value: value["event"] != "agent_question")
        assert key.startswith("agent_error-")
        assert alert == {"event": "agent_error", "text": f"{NICK} fell over"}
        quiet = asyncio.create_task(daemon.questions.ask("spark-ori", "a secret?", 30, ("yes", "no")))
        _, key, question = await fact(ori, "question", lambda value: value["open"])
        assert key == "q2" and not {"text", "place", "options"} & question.keys()
        assert question["who"] == "people"
        quiet.cancel()


async def test_no_state_is_told_before_there_is_one(ircd: IRCd, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some agents take a while to start: until then the ledger has what was told last, and nothing without a state."""
    daemon = assemble(agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])}), NICK)
    start, begun, may = daemon.keeper.start, asyncio.Event(), asyncio.Event()

    async def slowly() -> None:
        begun.set()
        await may.wait()
        await start()

    monkeypatch.setattr(daemon.keeper, "start", slowly)
    async with person(ircd.port) as ori, asyncio.timeout(PATIENCE):
        starting = asyncio.create_task(daemon.start())
        try:
            await begun.wait()
            daemon.reporting.alert("agent_error", "told after the state", None)
            await fact(ori, "alert")
            assert await facts(ori, "state") == []
            may.set()
            assert (await fact(ori, "state"))[2]["state"] == "idle"
        finally:
            may.set()
            await starting
            await daemon.stop()


async def test_one_that_does_not_start_after_a_kill_is_not_at_work(
    ircd: IRCd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def in_vain() -> None:
        raise WrongConfiguration("no such playbook")

    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with person(ircd.port) as ori:
        async with running(config, NICK) as daemon:
            await fact(ori, "state", lambda value: value["state"] == "idle")
            await daemon.transport.stop()  # its last word comes too late
        assert await fact(ori, "state", lambda value: value["state"] == "idle")
        daemon = assemble(config, NICK)
        monkeypatch.setattr(daemon.keeper, "start", in_vain)
        with pytest.raises(WrongConfiguration):
            await daemon.start()
        await daemon.stop()
        assert await fact(ori, "state", lambda value: value["state"] == "stopped")


@pytest.mark.parametrize(
    ("options", "told"),
    [((), False), (("x" * 101, "y"), False), (tuple(f"{n}" for n in range(21)), False), (("now", "später"), True)],
    ids=["none", "long", "many", "short"],
)
async def test_choices_are_told_all_of_them_or_none(
    ircd: IRCd, home: Path, options: tuple[str, ...], told: bool
) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with person(ircd.port) as ori, running(config, NICK) as daemon:
        asking = asyncio.create_task(daemon.questions.ask("#general", "when?", 30, options))
        question = (await fact(ori, "question"))[2]
        assert (question.get("options"), question["who"]) == (list(options) if told else None, "anyone")
        asking.cancel()


async def test_the_state_tells_what_was_used_of_how_much_also_after_a_restart(ircd: IRCd, home: Path) -> None:
    used = [{"usage": {"tokens": 250, "cost_usd": 0.5, "context_pct": 12}}, {"say": "ok"}]
    limits = {"tokens_per_day": 1000, "usd_per_day": 1, "turns_per_day": 100}
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [], used), "budget": limits})
    wanted = {"tokens": "250", "cost-usd": "0.5000", "budget-tokens": "1000", "budget-usd": "1", "budget-pct": "50"}
    async with person(ircd.port) as ori:
        for is_again in (False, True):
            async with running(config, NICK):
                if not is_again:
                    assert (await fact(ori, "state"))[2].get("budget-pct") == "0"
                    ori.send(f"PRIVMSG #general :@{NICK} go")
                _, _, state = await fact(
                    ori, "state", lambda value: {**wanted, "state": "idle"}.items() <= value.items()
                )
                assert "billing" not in state
