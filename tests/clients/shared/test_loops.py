"""Agents that answer each other stop; people and work do not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.clients.shared.inbox import Inbox
from culture.clients.shared.loops import UNMARKED, Lately, Limits, held_back, hops_after, hops_of, is_work
from culture.clients.shared.notes import Notes
from culture.clients.shared.records import Records
from culture.protocol.vocabulary import ClientTag, UserClass
from culture.server.ircd import IRCd
from culture.transport import Message
from tests.clients.shared.test_daemon import NICK, answered
from tests.support.agents import agents_yaml, playbook, prompts, running
from tests.support.client import Client, registered
from tests.support.mesh import mesh
from tests.support.waiting import PATIENCE, until

FINE = Lately()
ANY = {"wake": "anybody"}
"""The bots of these tests have no accounts; what is looked at here is how often they wake an agent."""


@given(st.integers(0, 50), st.sampled_from(list(UserClass)))
def test_only_agents_are_held_back_and_only_beyond_the_limit(hops: int, kind: UserClass) -> None:
    why = held_back(kind, hops, FINE, Limits(hops=6), stood_down=False)
    is_program = kind is not UserClass.HUMAN
    assert (why is not None) == (is_program and hops >= 6)
    assert held_back(kind, hops, FINE, Limits(hops=None), stood_down=False) is None
    assert (held_back(kind, hops, FINE, Limits(), stood_down=True) is not None) == is_program


def test_a_pair_and_a_channel_have_their_turns() -> None:
    agent, limits = UserClass.AGENT, Limits(pair=40, channel=200)
    assert held_back(agent, 0, Lately(19, 0), limits, stood_down=False) is None
    assert "20 times within an hour" in (held_back(agent, 0, Lately(20, 0), limits, stood_down=False) or "")
    assert held_back(agent, 0, Lately(0, 199), limits, stood_down=False) is None
    assert "200 times within an hour here" in (held_back(agent, 0, Lately(0, 200), limits, stood_down=False) or "")
    assert held_back(UserClass.HUMAN, 0, Lately(999, 999), limits, stood_down=False) is None


@pytest.mark.parametrize(
    "said, expected", [("4", 4), ("", UNMARKED), ("-1", UNMARKED), ("9" * 40, 1000), ("x", UNMARKED)]
)
def test_hops_are_what_the_tag_says_and_never_less_for_want_of_one(said: str, expected: int) -> None:
    assert hops_of(UserClass.AGENT, {ClientTag.HOPS.value: said} if said else {}) == expected
    assert hops_of(UserClass.HUMAN, {ClientTag.HOPS.value: said}) == 0


@given(st.lists(st.integers(0, 1000), max_size=5))
def test_a_reply_is_one_hop_further_unless_work_was_done(causes: list[int]) -> None:
    assert hops_after(causes, worked=True) == 0
    assert hops_after(causes, worked=False) == min(max(causes, default=0) + 1, 1000)


def test_talking_is_no_work() -> None:
    assert is_work({"type": "tool_use", "name": "Bash", "input": {"command": "make"}})
    assert not is_work({"type": "tool_use", "name": "irc_send", "input": {}})
    assert not is_work({"type": "tool_use", "name": "Bash", "input": {"command": "python3 -m x.irc_client send #a b"}})
    assert not is_work({"type": "text", "text": "hello"})


def test_talking_by_functions_is_no_work_either() -> None:
    command = 'python3 -c \'import irc; irc.irc_send("#a", "thanks")\''
    assert not is_work({"type": "tool_use", "name": "Bash", "input": {"command": command}})


@pytest.mark.parametrize("before", ["", "mcp__irc__", "irc.", "irc-", "irc: "])
def test_talking_through_the_bridge_is_no_work_either(before: str) -> None:
    for name in ("send_message", "read_messages", "create_channel", "list_channels", "get_members"):
        assert not is_work({"type": "tool_use", "name": before + name, "input": {"channel": "#a"}})
    assert is_work({"type": "tool_use", "name": f"{before}resend_message", "input": {}})


def mail(number: int, sender: str, place: str, *, private: bool = False) -> Message:
    """Something that a bot said at the end of its chain."""
    tags = {ClientTag.HOPS.value: "7"}
    return Message(place, sender, "x", datetime.now(UTC), f"m{number}", None, UserClass.BOT, private, tags=tags)


def test_private_words_of_however_many_bots_count_together(tmp_path: Path) -> None:
    """Else one that changes its nick every time would wake an agent without end."""
    records = Records(tmp_path / "inbox.db")
    inbox = Inbox(records, Notes(records))
    for number in range(5):
        inbox.receive(mail(number, f"spark-b{number}", f"spark-b{number}", private=True))
        inbox.end(inbox.begin(inbox.unread(), "x"), "done")
    assert inbox.lately("spark-b9", "spark-b9") == Lately(0, 5)
    assert inbox.lately("spark-b1", "#general") == Lately(1, 0)
    records.close()


def test_after_a_person_says_go_on_everything_is_counted_anew(tmp_path: Path) -> None:
    records = Records(tmp_path / "inbox.db")
    inbox = Inbox(records, Notes(records))
    inbox.receive(mail(0, "spark-b", "#general"))
    inbox.end(inbox.begin(inbox.unread(), "x"), "done")
    inbox.receive(mail(1, "spark-b", "#general"), held=True)
    assert inbox.lately("spark-b", "#general") == Lately(1, 1)
    assert inbox.release() == 1
    assert inbox.lately("spark-b", "#general") == Lately(0, 0)
    assert [each.hops for each in inbox.unread()] == [0]
    records.close()


def polite(folder: Path, name: str, other: str) -> str:
    """A playbook that always thanks the other."""
    return playbook(folder / name, [], [{"say": f"thank you, @{other}!"}])


@pytest.mark.fault("E12")
@pytest.mark.parametrize("agents", [2, 3])
async def test_polite_agents_stop_and_go_on_when_a_person_says_so(ircd: IRCd, home: Path, agents: int) -> None:
    names = [f"spark-p{number}" for number in range(agents)]
    said: list[dict[str, Any]] = []
    for name, other in zip(names, [*names[1:], names[0]], strict=True):
        work = home / name
        work.mkdir()
        said.append({"nick": name, "playbook": polite(home, f"{name}.d", other), "directory": str(work)})
    config = agents_yaml(home, ircd.port, *said)
    async with AsyncExitStack() as stack:
        ori = await stack.enter_async_context(registered(ircd.port, "spark-ori"))
        await ori.join("#general")
        daemons = [await stack.enter_async_context(running(config, name)) for name in names]
        ori.send(f"PRIVMSG #general :@{names[0]} say thanks")
        told = await ori.expect("NOTICE", "#general", where=lambda each: "I wait" in each.params[1])
        assert "6 automatic replies in a row" in told.params[1]
        turns = sum(len(prompts(home / name)) for name in names)
        assert turns == 6
        holder = told.source.split("!")[0]
        assert sum(daemon.inbox.held() for daemon in daemons) == 1
        ori.send(f"PRIVMSG #general :@{holder} go on")
        await ori.expect("NOTICE", "spark-ori", where=lambda each: "going on with 1 held message" in each.params[1])
        await until(lambda: sum(len(prompts(home / name)) for name in names) > turns)


@pytest.mark.fault("E12")
async def test_hops_survive_a_restart(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])}, rules=ANY)
    async with registered(ircd.port, "spark-bot", "message-tags") as bot:
        await bot.ask("MODE spark-bot +B")
        await bot.join("#general")
        async with running(config, NICK):
            bot.send(f"@+agentirc.dev/hops=7 PRIVMSG #general :@{NICK} again")
            await bot.expect("NOTICE", "#general", where=lambda each: "I wait" in each.params[1])
        async with running(config, NICK) as daemon:
            assert daemon.inbox.held() == 1
            bot.send(f"@+agentirc.dev/hops=5 PRIVMSG #general :@{NICK} fine")
            said = await bot.expect("PRIVMSG", "#general", where=lambda each: each.source.startswith(NICK))
            assert said.params[1] == "heard: fine"
            assert said.tags["+agentirc.dev/hops"] == "6"
            assert said.tags["+agentirc.dev/cause"]


async def test_one_message_of_a_program_wakes_at_most_eight(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])}, rules=ANY)
    async with AsyncExitStack() as stack:
        bot = await stack.enter_async_context(registered(ircd.port, "spark-bot", "message-tags"))
        await bot.ask("MODE spark-bot +B")
        others = [f"spark-o{number}" for number in range(9)]
        for nick in others:
            await (await stack.enter_async_context(registered(ircd.port, nick))).join("#general")
        await bot.join("#general")
        ori = await stack.enter_async_context(registered(ircd.port, "spark-ori"))
        await ori.join("#general")
        daemon = await stack.enter_async_context(running(config, NICK))
        named = [f"@{nick}" for nick in others]
        for before in (9, 8):
            bot.send(f"@+agentirc.dev/hops=0 PRIVMSG #general :{' '.join(named[:before])} @{NICK} all of you")
        told = await ori.expect("NOTICE", "#general", where=lambda each: "I wait" in each.params[1])
        assert "mentions 9, and wakes the first 8" in told.params[1], "only the first that is not woken tells it"
        assert daemon.inbox.held() == 2 and prompts(home / "work") == []
        bot.send(f"@+agentirc.dev/hops=0 PRIVMSG #general :{' '.join(named[:7])} @{NICK} eighth")
        await until(lambda: len(prompts(home / "work")) == 1)
        ori.send(f"PRIVMSG #general :{' '.join(named)} @{NICK} wake up")
        await until(lambda: len(prompts(home / "work")) == 2)
        assert daemon.inbox.held() == 2


async def test_work_begins_a_new_chain(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "build", "steps": [{"run": "true"}, {"say": "built"}]}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)}, rules=ANY)
    async with registered(ircd.port, "spark-bot", "message-tags") as bot, running(config, NICK):
        await bot.ask("MODE spark-bot +B")
        await bot.join("#general")
        bot.send(f"@+agentirc.dev/hops=5 PRIVMSG #general :@{NICK} build")
        said = await bot.expect("PRIVMSG", "#general", where=lambda each: each.source.startswith(NICK))
        assert (said.params[1], said.tags["+agentirc.dev/hops"]) == ("built", "0")


@pytest.mark.fault("E13")
async def test_where_the_work_is_finished_only_people_wake_it(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])}, rules=ANY)
    async with registered(ircd.port, "spark-ori") as ori, registered(ircd.port, "spark-bot") as bot:
        await ori.join("#general")
        await bot.ask("MODE spark-bot +B")
        await bot.join("#general")
        async with running(config, NICK) as daemon:
            await ori.ask("MODE #general +D")
            for number in range(20):
                bot.send(f"PRIVMSG #general :@{NICK} chatter {number}")
            await until(lambda: daemon.inbox.held() == 20)
            notices = [each for each in await bot.sync() if each.verb == "NOTICE" and each.source.startswith(NICK)]
            assert len(notices) <= 1
            ori.send(f"PRIVMSG #general :@{NICK} hello")
            assert await answered(ori, "#general") == "heard: hello"
            assert len(prompts(home / "work")) == 1


@pytest.mark.fault("E13")
async def test_a_person_has_it_stand_down_and_go_on(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])}, rules=ANY)
    async with registered(ircd.port, "spark-ori") as ori, registered(ircd.port, "spark-bot") as bot:
        await ori.join("#general")
        await bot.ask("MODE spark-bot +B")
        await bot.join("#general")
        async with running(config, NICK) as daemon:
            ori.send(f"PRIVMSG #general :@{NICK} stand down")
            await ori.expect("NOTICE", "spark-ori", where=lambda each: "standing down" in each.params[1])
            bot.send(f"PRIVMSG #general :@{NICK} chatter")
            await until(lambda: daemon.inbox.held() == 1)
            ori.send(f"PRIVMSG #general :@{NICK} go on")
            assert await answered(ori, "#general") == "heard: chatter"


@pytest.mark.fault("E12")
async def test_five_polite_agents_on_two_servers_stop(home: Path, tmp_path: Path) -> None:
    """The count crosses the link with the messages."""
    names = ["spark-p0", "thor-p1", "spark-p2", "thor-p3", "spark-p4"]
    async with mesh(tmp_path, ["spark", "thor"], [("thor", "spark")]) as servers, AsyncExitStack() as stack:
        await servers.linked()
        ori = await stack.enter_async_context(servers.client("spark", "spark-ori"))
        await ori.join("#general")
        for name, other in zip(names, [*names[1:], names[0]], strict=True):
            (home / name).mkdir()
            said = {"nick": name, "playbook": polite(home, f"{name}.d", other), "directory": str(home / name)}
            config = agents_yaml(home, servers.members[name.partition("-")[0]].port, said, rules=ANY)
            await stack.enter_async_context(running(config, name))
        await until_members(ori, len(names) + 1)
        ori.send(f"PRIVMSG #general :@{names[0]} say thanks")
        told = await ori.expect("NOTICE", "#general", where=lambda each: "I wait" in each.params[1])
        assert told.source.startswith("thor-p1!")
        assert sum(len(prompts(home / name)) for name in names) == 6


async def until_members(client: Client, wanted: int) -> None:
    """Wait until so many are in the channel, on whichever server."""
    async with asyncio.timeout(PATIENCE):
        while True:
            names = [each for each in await client.ask("NAMES #general") if each.verb == "353"]
            if sum(len(each.params[-1].split()) for each in names) >= wanted:
                return


async def test_twenty_messages_led_by_a_person_pass_untouched(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])}, rules=ANY)
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        for number in range(20):
            ori.send(f"PRIVMSG #general :@{NICK} step {number}")
            assert await answered(ori, "#general") == f"heard: step {number}"
        assert daemon.inbox.held() == 0


async def test_a_hand_off_of_twenty_messages_with_work_passes_untouched(ircd: IRCd, home: Path) -> None:
    """Each turn does something, so that no chain grows; the pair's hour has room for it."""
    said: list[dict[str, Any]] = []
    for name, other in (("spark-a", "spark-b"), ("spark-b", "spark-a")):
        (home / name).mkdir()
        rules = [
            {"when": r"part 2\d", "steps": [{"run": "echo done >> log"}, {"say": "all parts are there"}]},
            {
                "when": r"part (?P<n>\d+)",
                "steps": [
                    {"run": "echo {n} >> log; expr {n} + 1"},
                    {"say": f"@{other} I did my share, yours is part {{output}}"},
                ],
            },
        ]
        said.append({"nick": name, "playbook": playbook(home / f"{name}.d", rules), "directory": str(home / name)})
    config = agents_yaml(home, ircd.port, *said)
    async with (
        registered(ircd.port, "spark-ori") as ori,
        running(config, "spark-a") as one,
        running(config, "spark-b") as other,
    ):
        await ori.join("#general")
        ori.send("PRIVMSG #general :@spark-a begin with part 1")
        await ori.expect("PRIVMSG", "#general", where=lambda each: "all parts are there" in each.params[1])
        assert one.inbox.held() == other.inbox.held() == 0
        assert len(prompts(home / "spark-a")) + len(prompts(home / "spark-b")) == 20


async def calls(bot: Client, *words: str) -> None:
    """A program calls the agent once for each word, having just done work."""
    for word in words:
        bot.send(f"@+agentirc.dev/hops=0 PRIVMSG #general :@{NICK} {word}")
    await bot.sync()


@asynccontextmanager
async def among_bots(port: int) -> AsyncIterator[Client]:
    async with registered(port, "spark-bot", "message-tags") as bot:
        await bot.ask("MODE spark-bot +B")
        await bot.join("#general")
        yield bot


async def test_after_a_turn_agents_wait_to_cool_down_and_people_do_not(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(
        home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])}, rules={**ANY, "cool_down": "1h"}
    )
    async with among_bots(ircd.port) as bot, registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        await calls(bot, "one")
        assert await answered(ori, "#general") == "heard: one"
        await until(lambda: not daemon.work.busy)
        await calls(bot, "two", "three")
        await until(lambda: daemon.inbox.counts()[0] == 2)
        assert not daemon.work.busy and daemon.inbox.waiting
        ori.send(f"PRIVMSG #general :@{NICK} four")
        assert await answered(ori, "#general") == "heard: four"
        _, second = prompts(home / "work")
        assert [line.split()[-1] for line in second.splitlines() if line.startswith("[IRC")] == ["two", "three", "four"]


async def test_when_it_has_cooled_down_what_agents_said_is_one_prompt(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])}, rules={**ANY, "cool_down": 2})
    async with among_bots(ircd.port) as bot, running(config, NICK) as daemon:
        await calls(bot, "one")
        await until(lambda: len(daemon.inbox.journal(9)) == 1)
        ended = asyncio.get_running_loop().time()
        await calls(bot, "two", "three", "four")
        await until(lambda: len(daemon.inbox.journal(9)) == 2)
        assert asyncio.get_running_loop().time() - ended > 1
        _, second = prompts(home / "work")
        assert [line.split()[-1] for line in second.splitlines() if line.startswith("[IRC")] == ["two", "three", "four"]
