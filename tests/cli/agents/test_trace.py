"""``culture trace``, ``say --wait`` and ``status --all``: delivery that one can prove."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer

import culture.cli.agents.trace as trace
from culture.cli.agents.trace import describe_wait
from culture.protocol.vocabulary import Receipt
from culture.skills.history.archive import Archive
from culture.skills.history.store import TooSlow
from culture.transport import Address, ClientIdentity, IRCTransport
from tests.cli.agents.conftest import NICK, Machine
from tests.support.client import registered
from tests.support.servers import serving

STATES = ["stored", f"delivered {NICK}", f"injected {NICK}", f"answered {NICK}"]


async def test_a_message_is_followed_and_its_story_told(machine: Machine) -> None:
    machine.agents({"nick": NICK})
    await machine.run("start", NICK)
    for place, text in (("#general", f"@{NICK} ping"), (NICK, "ping")):
        said = await machine.run("say", "--wait", "--for", "answered", place, text)
        assert said.code == 0, said.err
        msgid, *states = said.out.splitlines()
        assert states == STATES
        where = ("--in", "#general") if place == "#general" else ()
        told = await machine.run("trace", msgid, *where)
        assert told.code == 0, told.err
        story = json.loads((await machine.run("trace", msgid, "--json", *where)).out)
        states = [step["state"] for step in story["steps"]]
        # Without an account nobody reads what they said in private before.
        assert states == (["said", "stored"] if where else []) + ["delivered", "injected", "answered"]
        assert [word for word in told.out.split() if word in states] == states
        assert story["waits"] == {} and bool(story["said"]) == bool(where)
        assert {step["server"] for step in story["steps"]} == {"spark"}
    assert (await machine.run("trace", "spark.never.1")).code == 1


async def test_what_a_message_waits_for_is_said(machine: Machine) -> None:
    machine.agents({"nick": NICK})
    await machine.run("start", NICK)
    await machine.run("pause", NICK)
    said = await machine.run("say", "--wait", NICK, "ping")
    assert said.code == 0 and said.out.splitlines()[1:] == STATES[:2]
    assert "paused" in said.err
    late = await machine.run("say", "--wait", "--for", "injected", "--timeout", "0.5", NICK, "ping")
    assert late.code == 3 and "not injected within 0.5 s" in late.err
    msgid = late.out.splitlines()[0]
    told = await machine.run("trace", msgid)
    assert f"{NICK} waits to be injected: paused until somebody says resume" in told.out
    everyone = await machine.run("status", "--all")
    assert everyone.code == 0, everyone.err
    assert [line.split()[:3] for line in everyone.out.splitlines()[1:2]] == [[NICK, "scripted", "paused"]]
    await machine.run("stop", NICK)
    [report] = json.loads((await machine.run("status", "--all", "--json")).out)
    assert (report["nick"], report["state"], report["server"], report["unread"]) == (NICK, "stopped", "spark", 2)
    assert "not connected, stopped" in (await machine.run("trace", msgid)).out
    await machine.run("start", NICK)
    await machine.run("resume", NICK)
    assert (await machine.run("ask", NICK, "ping")).code == 0
    assert "answered" in (await machine.run("trace", msgid)).out


async def test_a_refusal_is_told_apart_from_a_message_that_is_not_there(machine: Machine) -> None:
    async with registered(machine.port, "spark-dan", "echo-message message-tags") as dan:
        await dan.join("#general")
        dan.send("PRIVMSG #general :good morning")
        msgid = (await dan.expect("PRIVMSG", "#general")).tags["msgid"]
        assert (await machine.run("trace", msgid, "--in", "#general")).code == 0
        absent = await machine.run("trace", "spark.never.1", "--in", "#general")
        assert absent.code == 1 and "nothing is known about spark.never.1" in absent.err
        refused = await machine.run("trace", msgid, "--in", "not/a/nick")
        assert refused.code == 1 and "the server does not look in not/a/nick for you" in refused.err


async def test_without_an_agent_to_wait_for_stored_is_enough(machine: Machine) -> None:
    async with registered(machine.port, "spark-dan") as dan:
        await dan.join("#general")
        said = await machine.run("say", "--wait", "--for", "answered", "#general", "good morning")
        assert said.code == 0 and said.out.splitlines()[1:] == ["stored"]


@pytest.mark.parametrize(
    ("state", "is_here", "said"),
    [
        (None, True, "is here and does not say what becomes of messages"),
        (None, False, "is not on the mesh and does not say what becomes of messages"),
        ({"state": "idle"}, True, "waits to be injected"),
        ({"state": "idle"}, False, "waits to be injected: not connected, last idle"),
        ({"state": "parked"}, True, "waits to be injected: parked until somebody says resume"),
        ({"state": "working", "task": "a"}, True, "waits to be injected: working on 'a'"),
        ({"state": "asking"}, True, "waits to be injected: waiting for an answer to a question"),
        ({"state": "crashed"}, True, "waits to be injected: starting again after a crash"),
    ],
)
def test_the_reason_is_given_in_words(state: dict[str, str] | None, is_here: bool, said: str) -> None:
    assert describe_wait(Receipt.INJECTED, state, is_here) == said


@pytest.mark.parametrize("what", ["search", "read"])
@pytest.mark.parametrize("slow", [2, 9])
async def test_a_history_that_is_too_slow_for_now_is_asked_again_and_then_said_to_be(
    slow: int, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    search, tries = getattr(Archive, what), []

    async def slowly(self: Archive, ask: Any) -> Any:
        tries.append(ask)
        if len(tries) <= slow:
            raise TooSlow
        return await search(self, ask)

    monkeypatch.setattr(Archive, what, slowly)
    monkeypatch.setattr(trace, "_PAUSES", (0.0, 0.0, 0.0))
    async with serving(tmp_path) as ircd, registered(ircd.port, "spark-ada", "echo-message message-tags") as ada:
        transport = IRCTransport(
            Address("127.0.0.1", ircd.port), ClientIdentity("spark-ori", "ori", bot=False), ["#general"]
        )
        await transport.start()
        try:
            await ada.join("#general")
            [said] = await ada.ask("PRIVMSG #general :hello")
            msgid = said.tags["msgid"]
            if slow == 2:
                found = await trace._find_anywhere(transport, msgid)
                assert found is not None and found.text == "hello"
            else:
                with pytest.raises(typer.Exit):
                    await trace._find_anywhere(transport, msgid)
                assert "cannot read its history at present" in capsys.readouterr().err
        finally:
            await transport.stop()
