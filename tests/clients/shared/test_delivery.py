"""Nothing addressed to an agent is lost or given to it twice: floods, outages, servers that come and go."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from culture.config.model import Listen
from culture.server.ircd import IRCd
from culture.transport import catchup
from tests.clients.shared.test_daemon import NICK, answered
from tests.support.agents import agents_yaml, playbook, prompts, running
from tests.support.client import registered
from tests.support.ports import reserved
from tests.support.servers import serving
from tests.support.waiting import until

MENTIONS, SENDERS = 10_000, 200


@pytest.mark.fault("E8")
async def test_ten_thousand_mentions_cost_two_turns_and_none_is_lost(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "first", "steps": [{"wait": {"until": str(home / "go"), "timeout": 50}}, {"say": "done"}]}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} first")
        await until(lambda: daemon.work.busy)

        async def call(number: int) -> None:
            async with registered(ircd.port, f"spark-s{number}") as sender:
                sender.send("JOIN #general")
                for count in range(MENTIONS // SENDERS):
                    sender.send(f"PRIVMSG #general :@{NICK} {number}.{count}")
                # All of it has been taken, whatever the others say meanwhile.
                sender.send("PING end")
                await sender.expect("PONG", None, "end")

        for first in range(0, SENDERS, 20):
            await asyncio.gather(*(call(number) for number in range(first, first + 20)))
        await until(lambda: daemon.inbox.counts()[0] == MENTIONS)
        (home / "go").touch()
        await until(lambda: not daemon.work.busy and daemon.inbox.counts() == (0, 0))
        given = prompts(home / "work")
        assert len(given) == 2
        assert f"and {MENTIONS - 20} more: irc_read #general" in given[1]
        rows = daemon.records.execute("SELECT count(*), count(DISTINCT msgid) FROM messages WHERE state = 'answered'")
        assert rows.fetchone() == (MENTIONS + 1, MENTIONS + 1)


@pytest.mark.fault("E22")
@pytest.mark.requirement("F21", "F22", "F23")
async def test_what_was_said_while_the_server_was_away_from_it_is_answered(home: Path, tmp_path: Path) -> None:
    """The connection is lost with the server; what others said before the agent was back comes from the history."""
    folder = tmp_path / "server"
    async with AsyncExitStack() as stack:
        port = stack.enter_context(reserved())
        config = agents_yaml(home, port, {"nick": NICK, "playbook": playbook(home, [])})
        async with serving(folder, listen=(Listen(port=port),)), registered(port, "spark-ori") as ori:
            await ori.join("#general")
            daemon = await stack.enter_async_context(running(config, NICK))
            ori.send(f"PRIVMSG #general :@{NICK} one")
            assert await answered(ori, "#general") == "heard: one"
        await until(lambda: not daemon.transport.connected)
        async with serving(folder, listen=(Listen(port=port),)), registered(port, "spark-ori") as ori:
            await ori.join("#general")
            ori.send(f"PRIVMSG #general :@{NICK} two")
            ori.send(f"PRIVMSG #general :@{NICK} three")
            assert await answered(ori, "#general") == "heard: three"
            await until(lambda: not daemon.work.busy)
            lines = [line for prompt in prompts(home / "work") for line in prompt.splitlines() if "[IRC" in line]
            assert lines == [f"[IRC @mention in #general] <spark-ori> @{NICK} {n}" for n in ("one", "two", "three")]


@pytest.mark.fault("E22")
@pytest.mark.requirement("F23")
async def test_what_the_server_could_not_tell_yet_comes_after_the_next_start(
    ircd: IRCd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes meanwhile must not pass for the last that was received."""
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})

    async def asleep(*arguments: object) -> bool:
        raise catchup.HistoryUnavailable("the database sleeps")

    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with running(config, NICK):
            ori.send(f"PRIVMSG #general :@{NICK} one")
            assert await answered(ori, "#general") == "heard: one"
        await ori.ask(f"PRIVMSG #general :@{NICK} two")
        with monkeypatch.context() as patched:
            patched.setattr(catchup, "_by_arrival", asleep)
            async with running(config, NICK):
                ori.send(f"PRIVMSG #general :@{NICK} three")
                assert await answered(ori, "#general") == "heard: three"
        async with running(config, NICK):
            assert await answered(ori, "#general") == "heard: two"


@pytest.mark.requirement("H07")
async def test_what_a_prompt_only_counts_can_be_read_also_after_a_restart(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with running(config, NICK) as daemon:
            daemon.notes.paused = True
            for number in range(30):
                ori.send(f"PRIVMSG #general :@{NICK} in the channel {number}")
                ori.send(f"PRIVMSG {NICK} :in private {number}")
            await until(lambda: daemon.inbox.counts()[0] == 60)
        async with running(config, NICK) as daemon:
            for place, where in (("#general", "in the channel"), ("spark-ori", "in private")):
                page = await daemon.reading.read(place, 50)
                assert [each.text.removeprefix(f"@{NICK} ") for each in page.messages] == [
                    f"{where} {number}" for number in range(30)
                ]


@pytest.mark.requirement("H07")
async def test_what_fell_out_of_the_buffer_before_it_was_ever_read_can_be_read(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK}, rules={"buffer_size": 10})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        for number in range(300):
            ori.send(f"PRIVMSG #general :{number}")
        await until(lambda: daemon.buffer.ring("#general").came == 300)
        await ori.sync()
        first = await daemon.reading.read("#general", 200)
        rest = await daemon.reading.read("#general", 200)
        assert [each.text for each in (*first.messages, *rest.messages)] == [str(number) for number in range(300)]
