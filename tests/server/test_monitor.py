"""MONITOR: told of those one waits for, and of nobody else."""

import pytest

from culture.protocol.message import Message
from culture.protocol.stream import LINE_LIMIT
from culture.server.events import AccountSet, HostSet
from culture.server.ircd import IRCd
from tests.server.conftest import Crowd
from tests.server.rooms import codes, lines
from tests.support.client import Client, registered
from tests.support.servers import Serve

SOURCE = "{}!~tester@127.0.0.1"


async def quit_of(client: Client) -> None:
    client.send("QUIT")
    await client.ended()


async def test_coming_and_going(crowd: Crowd) -> None:
    """IRCv3 monitor: 731, 730; the nick compares without case, a mask is no nick"""
    ori = await crowd.join("spark-ori")
    assert lines(await ori.ask("MONITOR + spark-ADA")) == [("731", "spark-ori", "spark-ADA")]
    ada = await crowd.join("spark-ada")
    assert lines(await ori.sync()) == [("730", "spark-ori", SOURCE.format("spark-ada"))]
    await quit_of(ada)
    assert lines(await ori.sync()) == [("731", "spark-ori", "spark-ada")]
    assert codes(await ori.ask("MONITOR + *!*@127.0.0.1,spark-b*")) == ["432", "432"]
    await crowd.join("spark-bob")
    assert await ori.sync() == []


async def test_whoever_is_here_already_is_told_at_once(crowd: Crowd) -> None:
    """IRCv3 monitor: those here in one line, the others in one, also for ``S``"""
    ori = await crowd.join("spark-ori")
    await crowd.join("spark-ada")
    await crowd.join("spark-bob")
    told = [
        ("730", "spark-ori", f"{SOURCE.format('spark-ada')},{SOURCE.format('spark-bob')}"),
        ("731", "spark-ori", "spark-eve,thor-max"),
    ]
    assert lines(await ori.ask("MONITOR + spark-ada,spark-eve,,spark-bob,thor-max,spark-eve")) == told
    assert lines(await ori.ask("monitor s")) == told


async def test_no_longer(crowd: Crowd) -> None:
    """IRCv3 monitor: ``-`` and ``C`` say nothing; ``L`` lists with 732 and 733"""
    ori = await crowd.join("spark-ori")
    await ori.ask("MONITOR + spark-ada,spark-bob,spark-eve")
    assert await ori.ask("MONITOR - SPARK-ADA,spark-nobody") == []
    assert lines(await ori.ask("MONITOR L")) == [
        ("732", "spark-ori", "spark-bob,spark-eve"),
        ("733", "spark-ori", "End of MONITOR list"),
    ]
    await crowd.join("spark-ada")
    assert await ori.sync() == []
    assert await ori.ask("MONITOR C") == []
    assert codes(await ori.ask("MONITOR L")) == ["733"]
    assert await ori.ask("MONITOR S") == []
    await crowd.join("spark-bob")
    assert await ori.sync() == []


async def test_a_change_of_nick_is_going_and_coming(crowd: Crowd) -> None:
    """IRCv3 monitor: not of case"""
    ori = await crowd.join("spark-ori")
    await ori.ask("MONITOR + spark-ada,spark-eve")
    ada = await crowd.join("spark-ada")
    await ori.sync()
    await ada.ask("NICK spark-ADA")
    assert await ori.sync() == []
    await ada.ask("NICK spark-eve")
    assert lines(await ori.sync()) == [
        ("731", "spark-ori", "spark-ADA"),
        ("730", "spark-ori", SOURCE.format("spark-eve")),
    ]


async def test_so_many_and_no_more(serve: Serve) -> None:
    """IRCv3 monitor: 734 with those that found no room; 005 MONITOR"""
    async with serve(limits={"monitor": 2}) as ircd, registered(ircd.port, "spark-ori") as ori:
        assert any("MONITOR=2" in each.params for each in await ori.ask("VERSION"))
        assert lines(await ori.ask("MONITOR + a,b,c,A,d")) == [
            ("731", "spark-ori", "a,b,A"),
            ("734", "spark-ori", "2", "c,d", "Monitor list is full"),
        ]
        await ori.ask("MONITOR - a")
        assert lines(await ori.ask("MONITOR + c")) == [("731", "spark-ori", "c")]


async def test_long_lists_take_several_lines(crowd: Crowd) -> None:
    """RFC 2812 §2.3: 512 bytes"""
    ori = await crowd.join("spark-" + "o" * 26)
    nicks = [f"spark-{number:026}" for number in range(60)]
    for start in range(0, 60, 10):
        await ori.ask(f"MONITOR + {','.join(nicks[start : start + 10])}")
    ori.send("MONITOR L")
    rows = []
    while b" 733 " not in (raw := await ori.line()):
        assert len(raw) <= LINE_LIMIT
        rows += Message.parse(raw.decode().rstrip()).params[1].split(",")
    assert rows == nicks


async def test_two_watch_and_one_looks_away(crowd: Crowd) -> None:
    """IRCv3 monitor: lists are those of a session, and end with it"""
    ori, eve = await crowd.join("spark-ori"), await crowd.join("spark-eve")
    for client in (ori, eve):
        await client.ask("MONITOR + spark-ada")
    await eve.ask("MONITOR - spark-ada")
    ada = await crowd.join("spark-ada")
    assert codes(await ori.sync()) == ["730"]
    assert await eve.sync() == []
    await quit_of(ori)
    await ada.ask("NICK spark-bob")


async def test_a_session_that_ended_is_forgotten(ircd: IRCd, crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori")
    await ori.ask("MONITOR + spark-ada,spark-eve")
    assert len(vars(ircd.parts.monitors)["_watchers"]) == 2
    await quit_of(ori)
    assert vars(ircd.parts.monitors)["_watchers"] == vars(ircd.parts.monitors)["_watched"] == {}


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("MONITOR", "461"),
        ("MONITOR +", "461"),
        ("MONITOR -", "461"),
        ("MONITOR X", "FAIL"),
        ("MONITOR :", "FAIL"),
        ("MONITOR :a b", "FAIL"),
    ],
)
async def test_what_makes_no_sense_is_refused(crowd: Crowd, line: str, answer: str) -> None:
    ori = await crowd.join("spark-ori")
    assert codes(await ori.ask(line)) == [answer]


# extended-monitor

EVERY = "extended-monitor away-notify account-notify setname chghost"


async def stir(ircd: IRCd, ada: Client) -> None:
    """Everything about ada changes."""
    await ada.ask("AWAY :lunch")
    await ada.ask("SETNAME :Ada")
    router = ircd.parts.router
    with ircd.parts.turn():
        source = ircd.parts.network.users["spark-ada"].source
        router.publish(AccountSet(router.ids.stamp(), source, "ada", "human"))
        router.publish(HostSet(router.ids.stamp(), source, "~ada", "far.example"))


ALL_OF_IT = [("AWAY", "lunch"), ("SETNAME", "Ada"), ("ACCOUNT", "ada"), ("CHGHOST", "~ada", "far.example")]


async def test_changes_are_seen_from_afar(ircd: IRCd, crowd: Crowd) -> None:
    """IRCv3 extended-monitor: with the capability of each change"""
    ori = await crowd.join("spark-ori", caps=EVERY)
    bob = await crowd.join("spark-bob", caps="extended-monitor setname")
    eve = await crowd.join("spark-eve", caps="setname away-notify")
    ada = await crowd.join("spark-ada")
    for client in (ori, bob, eve):
        await client.ask("MONITOR + spark-ada")
    await stir(ircd, ada)
    assert lines(await ori.sync()) == ALL_OF_IT
    assert lines(await bob.sync()) == [("SETNAME", "Ada")]
    assert await eve.sync() == []


async def test_nobody_is_told_twice(ircd: IRCd, crowd: Crowd) -> None:
    """IRCv3 extended-monitor: who shares a channel has seen it; so has oneself"""
    ori = await crowd.join("spark-ori", "#room", caps=EVERY)
    ada = await crowd.join("spark-ada", "#room", caps=EVERY)
    for client in (ori, ada):
        await client.ask("MONITOR + spark-ada")
    await stir(ircd, ada)
    assert lines(await ori.sync()) == ALL_OF_IT
    assert [each.verb for each in ada.seen].count("SETNAME") == 1
    assert lines(await ada.sync()) == ALL_OF_IT[2:]
    assert "AWAY" not in codes(ada.seen)
