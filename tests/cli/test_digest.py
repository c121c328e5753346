"""``culture digest``: from a real server to the terminal, a channel, an address on the web."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from culture.protocol.message import escape
from tests.cli.shell import Shell
from tests.support.client import Client, registered
from tests.support.receiver import HOST, receiving

ORI, BEE, EVE = "spark-ori", "spark-bee", "spark-eve"
SETTINGS = {"name": "spark", "history": {"semantic": {"enabled": False}}}


def ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()


async def put(client: Client, kind: str, key: str, value: dict[str, Any]) -> None:
    [line] = await client.ask(f"@+agentirc.dev/fact={escape(json.dumps(value))} LEDGER PUT {kind} {key}")
    assert line.verb == "LEDGEREND", line


async def live(bee: Client, eve: Client) -> None:
    """An agent works, asks and gets stuck; somebody calls ori, and talks behind a closed door."""
    await bee.ask(f"MODE {BEE} +B")
    await put(bee, "state", "now", {"state": "paused", "since": ago(600)})
    turn = {"began": ago(900), "ended": ago(800), "outcome": "done"}
    await put(bee, "task", "turn-1", {**turn, "place": "#general", "text": "deploy the site", "by": EVE})
    await put(bee, "spend", "turn-1", {**turn, "tokens": 1200, "cost_usd": 0.25})
    await put(
        bee, "question", "q7", {"open": True, "asked": ago(7200), "text": "Delete \x1b[2J it?", "place": "#general"}
    )
    for channel in ("#general", "#closed"):
        await eve.join(channel)
    await eve.ask("MODE #closed +s")
    eve.send(f"PRIVMSG #general :@{ORI} look at the build")
    eve.send("PRIVMSG #closed :nobody else knows")
    await eve.sync()


@pytest.fixture
def terminal(shell: Shell) -> Shell:
    shell.environment["LOGNAME"] = "ori"
    shell.write(json.dumps(SETTINGS))
    return shell


async def test_it_tells_what_was_done_asked_and_spent_and_what_waits_for_you(terminal: Shell) -> None:
    _, port = await terminal.serve()
    async with registered(port, BEE, "message-tags") as bee, registered(port, EVE) as eve:
        await live(bee, eve)
        told = await terminal.run("digest", "--since", "1h")
        assert told.code == 0, told.err
        for text in (
            "1 turn, 1,200 tokens, 0.25 USD",
            "spark-bee q7, open for 2h in #general: Delete it?",
            f"{EVE} mentioned you in #general",
            "spark-bee (for 10m): is paused  → `culture resume spark-bee`",
            f"deploy the site in #general, for {EVE}: done",
            f"#general: 1 said, by {EVE} 1",
        ):
            assert text in told.out, told.out
        assert "\x1b" not in told.out and "#closed" not in told.out
        data = json.loads((await terminal.run("digest", "--json", "--agent", BEE)).out)
        assert data["deeds"][0]["outcomes"] == {"done": 1} and data["spent"]["cost_usd"] == 0.25
        unknown = await terminal.run("digest", "--agent", "spark-be")
        assert unknown.code == 1 and "did you mean spark-bee?" in unknown.err


async def test_it_is_posted_to_a_channel_and_to_the_web_without_what_is_yours(terminal: Shell) -> None:
    async with receiving() as receiver:
        digest = {"channel": "#digest", "webhook": receiver.url("/x"), "allow_private": [HOST]}
        terminal.write(json.dumps({**SETTINGS, "digest": digest})).chmod(0o600)
        _, port = await terminal.serve()
        async with registered(port, BEE, "message-tags") as bee, registered(port, EVE) as eve:
            await live(bee, eve)
            await eve.join("#digest")
            posted = await terminal.run("digest", "--scheduled")
            assert posted.code == 0, posted.err
            first = await eve.expect("NOTICE", "#digest")
            assert first.source.startswith(f"{ORI}!") and "1 turn" in first.params[1]
            lines = [line.params[1] for line in await eve.sync() if line.verb == "NOTICE"]
            assert any("spark-bee q7" in line for line in lines)
            (received,) = await receiver.got()
            assert received.said["event"] == "digest" and "spark-bee q7" in received.said["text"]
            assert "mentioned you" not in received.said["text"] and "#closed" not in received.said["text"]


async def test_without_a_place_to_post_it_says_so(terminal: Shell) -> None:
    for words in (["--scheduled"], ["--to", "webhook"]):
        refused = await terminal.run("digest", *words)
        assert refused.code == 78 and "digest.webhook" in refused.err
    assert (await terminal.run("digest", "--to", "nowhere")).code == 2
    assert (await terminal.run("service", "install", "--digest")).code == 78


async def test_an_agent_puts_it_into_words_which_are_marked_as_its_own(terminal: Shell) -> None:
    terminal.write(json.dumps({**SETTINGS, "digest": {"summarise": BEE, "summary_timeout": "5s"}}))
    _, port = await terminal.serve()
    async with registered(port, BEE, "message-tags") as bee, registered(port, EVE) as eve:
        await live(bee, eve)
        asking = await terminal.spawn("digest")
        question = await bee.expect("PRIVMSG", BEE, where=lambda line: "Tell a person" in line.params[1])
        assert question.source.startswith(f"{ORI}!")
        quoted = await bee.expect("PRIVMSG", BEE)
        assert quoted.params[1].startswith("> "), "what others wrote is not ori's word"
        bee.send(f"PRIVMSG {ORI} :All is well but q7.")
        assert await asking.ended() == 0
        before, _, facts = asking.said.partition("All is well but q7.")
        assert "written by a model" in before and "1 turn, 1,200 tokens" in facts


async def test_an_agent_that_says_nothing_leaves_the_facts(terminal: Shell) -> None:
    terminal.write(json.dumps({**SETTINGS, "digest": {"summarise": BEE, "summary_timeout": "100ms"}}))
    _, port = await terminal.serve()
    async with registered(port, BEE, "message-tags") as bee, registered(port, EVE) as eve:
        await live(bee, eve)
        told = await terminal.run("digest")
        assert told.code == 0 and "gave no summary" in told.out and "1 turn, 1,200 tokens" in told.out


async def test_a_timer_runs_it_when_the_settings_say(terminal: Shell) -> None:
    for said, when in (
        ({"at": "08:00"}, "OnCalendar=*-*-* 08:00:00"),
        ({"every": "6h"}, "OnUnitActiveSec=21600"),
    ):
        terminal.write(json.dumps({**SETTINGS, "digest": {"channel": "#digest", **said}}))
        shown = (await terminal.run("service", "install", "--digest", "--print")).out
        assert when in shown and "digest --scheduled" in shown and "Type=oneshot" in shown
    folder = terminal.folder / "units"
    installed = await terminal.run("service", "install", "--digest", "--folder", str(folder))
    assert "enable --now culture-digest.timer\n" in installed.out
    assert {file.name for file in folder.iterdir()} == {"culture-digest.service", "culture-digest.timer"}
    await terminal.run("service", "uninstall", "--digest", "--folder", str(folder))
    assert not list(folder.iterdir())
    terminal.write(json.dumps({**SETTINGS, "digest": {"at": "08:00", "every": "6h"}}))
    assert "goes with every: 24h alone" in (await terminal.run("config", "check")).err
