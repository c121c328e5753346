"""Whose nick a message goes out under, where there are no tokens."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from culture.bridge.callers import NOBODY, Caller
from culture.bridge.client import BridgeClient
from culture.bridge.connection_pool import BridgeConnectionPool
from culture.bridge.settings import from_environment
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from culture.transport import Address, NotSent
from tests.bridge.conftest import Bridge
from tests.bridge.program import Program, Refused, over_http
from tests.support.client import registered
from tests.support.clock import Clock
from tests.support.people import accounts_of
from tests.support.ports import reserved
from tests.support.servers import serving

JULES = Caller("t1", ("spark-jules",), ("#general",))


@pytest.mark.requirement("N13")
async def test_many_share_a_bridge_and_each_speaks_under_its_own_nick(ircd: IRCd, program: Program) -> None:
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        for sender in (None, "jules", "spark-ramona", "JULES"):
            more = {} if sender is None else {"sender": sender}
            await program.call("send_message", channel="#general", text=f"I am {sender}", **more)
        sources = [message.source.partition("!")[0] for message in await ori.sync() if message.verb == "PRIVMSG"]
        assert sources == ["spark-mcp-bridge", "spark-jules", "spark-ramona", "spark-jules"]
        lines = await ori.ask("WHOIS spark-jules")
        assert next(line for line in lines if line.verb == "311").params[-1] == "spark-jules via spark-mcp-bridge"
        assert "335" in {line.verb for line in lines}, "shown as a program"
        found = (await program.call("read_messages", channel="#general", limit=1))["messages"][0]
        assert (found["sender"], found["human"]) == ("spark-jules", False)


async def test_nobody_speaks_as_who_is_on_line(ircd: IRCd, program: Program) -> None:
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        for sender in ("ori", "spark-ori", "SPARK-ORI"):
            with pytest.raises(Refused, match="somebody else, who is on line"):
                await program.call("send_message", channel="#general", text="hello", sender=sender)
        heard = [message for message in await ori.sync() if not message.source.startswith("spark-mcp-bridge!")]
        assert [message for message in heard if message.verb in ("PRIVMSG", "JOIN")] == []


async def test_nobody_speaks_as_a_person_who_is_not_there(tmp_path: Path, bridge: Bridge) -> None:
    accounts = accounts_of(tmp_path, "ori")
    async with (
        serving(tmp_path / "server", accounts_file=accounts.path) as ircd,
        bridge(ircd.port) as port,
        over_http(port) as program,
        registered(ircd.port, "spark-pat") as pat,
    ):
        await program.call("list_channels")  # the bridge has joined
        await pat.join("#general")
        with pytest.raises(Refused, match="somebody else"):
            await program.call("send_message", channel="#general", text="hello", sender="ori")
        assert [message for message in await pat.sync() if message.verb in ("PRIVMSG", "JOIN")] == []


async def test_nobody_speaks_as_the_person_at_the_keyboard(tmp_path: Path, bridge: Bridge) -> None:
    """The bridge is a process of the account's own user, which the server would take at its nick's word."""
    AccountStore(tmp_path / "accounts.json", "spark").add(new_account("ori", UserClass.HUMAN, user=str(os.getuid())))
    async with (
        serving(tmp_path / "server", accounts_file=tmp_path / "accounts.json") as ircd,
        bridge(ircd.port) as port,
        over_http(port) as program,
        registered(ircd.port, "spark-pat") as pat,
    ):
        await pat.join("#general")
        with pytest.raises(Refused, match="cannot be on line: the account ori is not of class agent"):
            await program.call("send_message", channel="#general", text="hello", sender="ori")
        assert [message for message in await pat.sync() if message.verb == "PRIVMSG"] == []


async def test_what_is_no_nick_is_refused(ircd: IRCd) -> None:
    async with running_client(ircd) as bridge_client:
        for sender in ("", "a b", "x\r\nQUIT", "#general", "human", "spark-human", "server", "ori!x@y", "*", "9"):
            with pytest.raises(NotSent, match="not a nick that one can have"):
                await bridge_client.say(NOBODY, sender, "#general", "hello")


@asynccontextmanager
async def running_client(ircd: IRCd, **more: object) -> AsyncIterator[BridgeClient]:
    address = Address("127.0.0.1", ircd.port)
    settings = from_environment({"IRC_SERVER": "127.0.0.1", "IRC_PORT": str(ircd.port)})
    pool = BridgeConnectionPool(address, lambda _: None, set(), **more)  # type: ignore[arg-type]
    bridge_client = BridgeClient(settings, lambda _: None, pool)
    async with bridge_client.running():
        yield bridge_client


async def test_there_are_few_connections_and_the_longest_unused_makes_room(ircd: IRCd) -> None:
    async with running_client(ircd, most=2) as bridge_client, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        for sender in ("one", "two", "one", "three"):
            await bridge_client.say(NOBODY, sender, "#general", "hello")
        assert sorted(bridge_client.pool.nicks) == ["spark-one", "spark-three"]
        await ori.expect("QUIT", where=lambda message: message.source.startswith("spark-two!"))


async def test_a_nick_that_was_idle_leaves_and_comes_back_where_it_was(ircd: IRCd) -> None:
    clock = Clock()
    async with running_client(ircd, idle=60.0, clock=clock) as bridge_client, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await bridge_client.create(JULES, None, "#plans")
        await bridge_client.pool.close_idle()
        assert bridge_client.pool.nicks == ["spark-jules"]
        clock.now += 61.0
        await bridge_client.pool.close_idle()
        assert bridge_client.pool.nicks == []
        await ori.expect("QUIT", where=lambda message: message.source.startswith("spark-jules!"))
        assert await bridge_client.read(JULES, None, "#plans", None, 10) == []
        assert await bridge_client.read(JULES, None, "#general", None, 10) == []


async def test_calls_at_the_same_time_share_one_connection(ircd: IRCd) -> None:
    async with running_client(ircd) as bridge_client, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await asyncio.gather(*(bridge_client.say(NOBODY, "jules", "#general", f"{number}") for number in range(5)))
        said = [message for message in await ori.sync() if message.verb in ("PRIVMSG", "JOIN")]
        assert [message.source.partition("!")[0] for message in said].count("spark-jules") == 6


async def test_a_nick_that_was_taken_meanwhile_is_given_up(ircd: IRCd) -> None:
    async with running_client(ircd) as bridge_client, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await bridge_client.say(NOBODY, "jules", "#general", "hello")
        async with bridge_client.pool.connection("spark-jules", "", (), False) as irc:
            await irc.request("NICK", "spark-other")
            async with registered(ircd.port, "spark-jules"):
                with pytest.raises(NotSent, match="somebody else"):
                    await bridge_client.say(NOBODY, "jules", "#general", "hello again")


async def test_without_a_server_a_call_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("culture.bridge.client._CONNECT_WAIT", 0.05)
    with reserved() as port:
        bridge_client = BridgeClient(from_environment({"IRC_PORT": str(port)}), lambda _: None)
        async with bridge_client.running():
            with pytest.raises(NotSent, match="not connected to the IRC server"):
                await bridge_client.channels(NOBODY, None)


async def test_a_nick_whose_connection_was_lost_is_back_with_the_next_call(ircd: IRCd) -> None:
    async with running_client(ircd) as bridge_client, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await bridge_client.create(JULES, None, "#plans")
        async with bridge_client.pool.connection("spark-jules", "", (), False) as irc:
            await irc.stop()
        await bridge_client.say(JULES, None, "#general", "here again")
        await ori.expect("PRIVMSG", "#general", "here again")
        assert await bridge_client.read(JULES, None, "#plans", None, 10) == []
