"""A connection that is lost, and everything that has to be as before afterwards."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from culture.transport import Address, ClientIdentity, ConnectionState, NotSent, Timing
from tests.support.client import Client, registered
from tests.support.mesh import mesh
from tests.support.proxy import Proxy, proxied
from tests.support.waiting import PATIENCE
from tests.transport.conftest import QUICK, Come, Somebody


@pytest.fixture
async def way(ircd: IRCd) -> AsyncIterator[Proxy]:
    """Between somebody and the server."""
    async with proxied(ircd.port) as proxy:
        yield proxy


async def gone(watch: Client, nick: str) -> None:
    """Wait until the server has noticed that somebody has left."""
    await watch.expect("QUIT", where=lambda line: line.source.startswith(f"{nick}!"))


@pytest.mark.requirement("F22", "F24")
async def test_after_a_cut_everything_is_as_before(ircd: IRCd, way: Proxy, come: Come) -> None:
    ada = await come(way.port, "spark-ada", ["#general", "#left"])
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await ada.irc.join_channel("#later")
        await ada.irc.part_channel("#left")
        way.cut()
        await ada.until(lambda: not ada.irc.connected)
        with pytest.raises(NotSent, match="not connected"):
            await ada.irc.send_privmsg("#general", "hello?")
        await gone(ori, "spark-ada")
        way.heal()
        await ada.connected(times=2)
        assert ada.irc.nick == "spark-ada"
        assert sorted(ada.irc.channels) == ["#general", "#later"]
        ori.send("PRIVMSG #general :welcome back")
        assert not (await ada.hears("welcome back")).missed


async def test_a_lost_connection_leaves_no_request_to_cancel(ircd: IRCd, way: Proxy, come: Come) -> None:
    """With Python 3.11.2 the next attempt that times out would take it for one, and never be followed by another."""
    ada = await come(way.port, "spark-ada")
    for times in (2, 3):
        way.cut()
        await ada.until(lambda: not ada.irc.connected)
        way.heal()
        await ada.connected(times=times)
        task = ada.irc._reconnector._task
        assert task is not None and task.cancelling() == 0


@pytest.mark.fault("E22")
@pytest.mark.requirement("F21")
async def test_what_was_missed_comes_first_and_once(ircd: IRCd, way: Proxy, come: Come) -> None:
    ada = await come(way.port, "spark-ada", ["#general", "#other"])
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await ori.join("#other")
        ori.send("PRIVMSG #general :before")
        await ada.hears("before")
        way.cut()
        await gone(ori, "spark-ada")
        for number in range(5):
            await ori.ask(f"PRIVMSG {'#general' if number % 2 else '#other'} :{number} @ada")
        way.heal()
        await ada.connected(times=2)
        ori.send("PRIVMSG #general :after")
        await ada.hears("after")
    assert ada.texts == ["before", "0 @ada", "1 @ada", "2 @ada", "3 @ada", "4 @ada", "after"]
    assert [message.missed for message in ada.heard] == [False, True, True, True, True, True, False]
    assert len({message.msgid for message in ada.heard}) == 7
    assert all(message.mentions == ("spark-ada",) for message in ada.heard[1:-1])


async def test_what_was_said_before_the_first_coming_was_not_missed(ircd: IRCd, way: Proxy, come: Come) -> None:
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await ori.ask("PRIVMSG #general :long ago")
        ada = await come(way.port, "spark-ada", ["#general"])
        way.cut()
        await gone(ori, "spark-ada")
        await ori.ask("PRIVMSG #general :now")
        way.heal()
        await ada.hears("now")
    assert ada.texts == ["now"]


@pytest.mark.fault("E22")
async def test_a_server_that_is_killed_is_waited_for(tmp_path: Path, come: Come) -> None:
    """kill -9, and what others said on it before and after."""
    async with mesh(tmp_path, ["spark"]) as servers:
        port = servers.members["spark"].port
        ada = await come(port, "spark-ada", ["#general"])
        await servers.kill("spark")
        await ada.until(lambda: not ada.irc.connected)
        await ada.until(lambda: sum(state is ConnectionState.LOST for state, _ in ada.states) > 2)
        await servers.start("spark")
        await ada.connected(times=2)
        assert ada.irc.channels == ["#general"]
        assert await ada.irc.send_privmsg("#general", "still here")


async def test_a_connection_that_says_nothing_is_given_up(ircd: IRCd, way: Proxy, come: Come) -> None:
    """Half open: nobody has closed it, and nothing comes."""
    timing = Timing(silence=0.3, first_pause=0.05, longest_pause=0.1)
    ada = await come(way.port, "spark-ada", ["#general"], timing=timing)
    way.drop()
    await ada.until(lambda: any("nothing came" in detail for _, detail in ada.states))
    way.heal()
    await ada.connected(times=2)


async def test_a_quiet_connection_is_kept(ircd: IRCd, way: Proxy, come: Come) -> None:
    ada = await come(way.port, "spark-ada", timing=Timing(silence=0.9))
    way.forget()
    await way.until(lambda: way.recorded("server").count(b"PING") > 6)
    assert ada.irc.connected and len(ada.states) == 2


async def test_a_send_that_was_cut_off_is_uncertain(ircd: IRCd, way: Proxy, come: Come) -> None:
    ada = await come(way.port, "spark-ada", ["#general"])
    way.drop("client")
    way.forget()
    sending = asyncio.create_task(ada.irc.send_privmsg("#general", "hello?"))
    await way.until(lambda: b"hello?" in way.recorded("server"))
    way.cut()
    with pytest.raises(NotSent) as refused:
        await sending
    assert refused.value.uncertain


async def test_whoever_is_kicked_does_not_come_back_by_itself(ircd: IRCd, way: Proxy, come: Come) -> None:
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        ada = await come(way.port, "spark-ada", ["#general", "#other"])
        ori.send("KICK #general spark-ada :enough")
        await ada.until(lambda: bool(ada.outside))
        assert ada.outside == [("#general", "kicked by spark-ori: enough")]
        await ori.ask("MODE #general +b spark-ada")
        way.cut()
        await ada.until(lambda: not ada.irc.connected)
        way.heal()
        await ada.connected(times=2)
    assert ada.irc.channels == ["#other"]


async def test_whoever_is_banned_is_told(ircd: IRCd, come: Come) -> None:
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await ori.ask("MODE #general +b spark-ada")
        ada = await come(ircd.port, "spark-ada", ["#general"])
    assert ada.outside == [("#general", "Cannot join channel (+b)")]
    with pytest.raises(NotSent, match="Cannot join channel"):
        await ada.irc.join_channel("#general")


@pytest.mark.fault("E23")
@pytest.mark.requirement("F22")
async def test_the_nick_comes_back_from_its_own_ghost(ircd: IRCd, way: Proxy, come: Come) -> None:
    """Without a login: another nick until the ghost is gone, then the right one."""
    async with registered(ircd.port, "spark-ada") as ghost:
        ada = await come(ircd.port, "spark-ada", ["#general"], timing=Timing(regain=PATIENCE * 10))
        assert ada.irc.nick == "spark-ada_"
        ghost.close()
        async with registered(ircd.port, "spark-ori") as ori:
            await ori.join("#general")
            if ada.irc.nick != "spark-ada":
                await ori.expect("NICK", "spark-ada")
            await ori.ask("PRIVMSG #general :@spark-ada is that you")
            assert (await ada.hears("@spark-ada is that you")).mentions == ("spark-ada",)
    assert ada.irc.nick == "spark-ada"
    assert [member.nick for member in ada.irc.members("#general") if member.nick != "spark-ori"] == ["spark-ada"]


async def test_a_receiver_that_fails_gets_it_again(ircd: IRCd, come: Come) -> None:
    """What could not be written down is not lost: the connection ends, and the history has it."""
    failures = [OSError("no space")]
    heard: list[str] = []

    class Forgetful(Somebody):
        def _note(self, into):  # type: ignore[no-untyped-def]
            inner = super()._note(into)

            def note(message):  # type: ignore[no-untyped-def]
                if failures and message.text == "write this down":
                    raise failures.pop()
                heard.append(message.text)
                inner(message)

            return note

    ada = Forgetful(ircd.port, "spark-ada", ["#general"])
    await ada.irc.start()
    try:
        async with registered(ircd.port, "spark-ori") as ori:
            await ori.join("#general")
            for text in ("first", "write this down", "last"):
                ori.send(f"PRIVMSG #general :{text}")
            await ada.hears("last")
    finally:
        await ada.irc.stop()
    assert heard == ["first", "write this down", "last"]


async def test_starting_waits_for_a_server_that_is_not_there_yet(ircd: IRCd, way: Proxy, come: Come) -> None:
    way.cut()
    ada = await come(way.port, "spark-ada", ["#general"], wait=False)
    starting = asyncio.create_task(ada.irc.start())
    await ada.until(lambda: sum(state is ConnectionState.LOST for state, _ in ada.states) > 1)
    way.heal()
    await starting
    assert ada.irc.connected


async def test_starting_can_be_given_up(ircd: IRCd, way: Proxy, come: Come) -> None:
    way.cut()
    before = asyncio.all_tasks()
    ada = Somebody(way.port, "spark-ada")
    starting = asyncio.create_task(ada.irc.start())
    await ada.until(lambda: any(state is ConnectionState.LOST for state, _ in ada.states))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert asyncio.all_tasks() <= before


async def test_an_ordinary_end_of_the_server_is_waited_for_too(tmp_path: Path, come: Come) -> None:
    async with mesh(tmp_path, ["spark"]) as servers:
        member = servers.members["spark"]
        address = Address("127.0.0.1", member.port)
        ada = await come(member.port, "", ["#general"], address=address, identity=ClientIdentity("ada"), timing=QUICK)
        await member.kill(signal.SIGTERM)
        await ada.until(lambda: not ada.irc.connected)
        await member.start()
        await ada.connected(times=2)
        assert ada.irc.nick == "spark-ada"
