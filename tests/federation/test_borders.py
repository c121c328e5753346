"""Channels that stay at home (+L), or are shared with some servers alone (+S)."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from culture.config.links import LinkConfig
from culture.server.channels.registered_channels import dump, dump_channel, parse
from culture.server.core.state import Channel
from culture.server.ircd import IRCd
from tests.federation.raw import SECRET, mesh_of, raw_peer
from tests.support.client import Client, registered
from tests.support.servers import serving
from tests.support.waiting import until


class Chain:
    """odin – spark – thor: who is in between sees everything, and decides what goes on."""

    def __init__(self, servers: dict[str, IRCd], stack: AsyncExitStack) -> None:
        self.servers = servers
        self._stack = stack

    async def client(self, nick: str, *channels: str) -> Client:
        """Somebody on the server of the nick's prefix."""
        port = self.servers[nick.partition("-")[0]].port
        client = await self._stack.enter_async_context(registered(port, nick))
        for channel in channels:
            await client.join(channel)
        return client

    def members(self, server: str, name: str) -> set[str]:
        """Who is in a channel, as a server knows it."""
        channel = self.servers[server].parts.network.channel(name)
        return {user.nick for user in channel.members} if channel is not None else set()

    async def until(self, name: str, **expected: set[str]) -> None:
        """Wait until the servers say that these are in a channel."""
        await until(lambda: {each: self.members(each, name) for each in expected} == expected)


@pytest.fixture
async def chain(tmp_path: Path) -> AsyncIterator[Chain]:
    async with AsyncExitStack() as stack:
        yield await _chain(tmp_path, stack)


async def _chain(folder: Path, stack: AsyncExitStack) -> Chain:
    waits = (LinkConfig(name="thor", secret=SECRET), LinkConfig(name="odin", secret=SECRET))
    spark = await stack.enter_async_context(serving(folder / "spark", name="spark", links=waits))
    servers = {"spark": spark}
    for name in ("thor", "odin"):
        link = LinkConfig(name="spark", secret=SECRET, address=f"127.0.0.1:{spark.port}")
        servers[name] = await stack.enter_async_context(serving(folder / name, name=name, links=(link,)))
    await until(lambda: all(len(each.parts.network.servers) == 2 for each in servers.values()))
    return Chain(servers, stack)


EVERYBODY = {"spark-ori", "thor-bob", "odin-eve"}


@asynccontextmanager
async def everybody(chain: Chain, channel: str) -> AsyncIterator[tuple[Client, Client, Client]]:
    """One of each server, all in a channel and its operators."""
    ori = await chain.client("spark-ori", channel)
    bob, eve = await chain.client("thor-bob", channel), await chain.client("odin-eve", channel)
    await chain.until(channel, spark=EVERYBODY, thor=EVERYBODY, odin=EVERYBODY)
    yield ori, bob, eve


@pytest.mark.fault("D18")
async def test_a_local_channel_is_each_servers_own(chain: Chain) -> None:
    async with everybody(chain, "#plans") as (ori, bob, eve):
        await ori.ask("MODE #plans +L")
        await chain.until("#plans", spark={"spark-ori"}, thor={"thor-bob"}, odin={"odin-eve"})
        await ori.ask("PRIVMSG #plans :a secret")
        await ori.ask("TOPIC #plans :another one")
        await bob.ask("PRIVMSG #plans :anybody here?")
        # What comes later over the same links is there, so nothing is on its way any more.
        for client in (ori, bob, eve):
            await client.join("#open")
        await chain.until("#open", spark=EVERYBODY, thor=EVERYBODY, odin=EVERYBODY)
        for client, text in ((bob, "a secret"), (eve, "a secret"), (eve, "another one"), (ori, "anybody here?")):
            await client.sync()
            assert not [line for line in client.seen if text in str(line)]


@pytest.mark.fault("D18")
async def test_it_is_shared_again_without_what_was_said_meanwhile(chain: Chain) -> None:
    async with everybody(chain, "#plans") as (ori, bob, eve):
        await ori.ask("MODE #plans +L")
        await chain.until("#plans", spark={"spark-ori"}, thor={"thor-bob"}, odin={"odin-eve"})
        await ori.ask("PRIVMSG #plans :a secret")
        await ori.ask("MODE #plans -L")
        await chain.until("#plans", spark=EVERYBODY, thor=EVERYBODY, odin=EVERYBODY)
        await ori.ask("PRIVMSG #plans :hello again")
        for client in (bob, eve):
            await client.expect("PRIVMSG", "#plans", "hello again")
            assert not [line for line in client.seen if "a secret" in str(line)]


@pytest.mark.fault("D18")
async def test_a_channel_is_shared_with_the_named_servers_alone(chain: Chain) -> None:
    async with everybody(chain, "#plans") as (ori, bob, eve):
        await ori.ask("MODE #plans +S thor")
        await chain.until("#plans", spark={"spark-ori", "thor-bob"}, thor={"spark-ori", "thor-bob"}, odin={"odin-eve"})
        await bob.ask("PRIVMSG #plans :for spark and thor")
        await ori.expect("PRIVMSG", "#plans", "for spark and thor")
        shown = [m.params[1:] for m in await bob.ask("MODE #plans") if m.verb == "324"]
        assert shown == [("#plans", "+ntS", "spark,thor")]
        await ori.ask("MODE #plans -S")
        await chain.until("#plans", spark=EVERYBODY, thor=EVERYBODY, odin=EVERYBODY)
        await ori.ask("PRIVMSG #plans :for all")
        await eve.expect("PRIVMSG", "#plans", "for all")
        assert not [line for line in eve.seen if "for spark and thor" in str(line)]


@pytest.mark.fault("D18")
async def test_nothing_of_it_is_told_later_either(tmp_path: Path) -> None:
    """Backfill: what was said while the channel was closed to a server stays so."""
    links = (LinkConfig(name="thor", secret=SECRET),)
    async with serving(tmp_path, links=links) as ircd, registered(ircd.port, "spark-ori") as ori:
        for channel, mode in (("#local", "+L"), ("#some", "+S odin"), ("#all", "+i")):
            await ori.join(channel)
            await ori.ask(f"MODE {channel} {mode}")
            await ori.ask(f"PRIVMSG {channel} :said in {channel}")
            await ori.ask(f"MODE {channel} -{mode[1]}")
        await until(lambda: mesh_of(ircd).log.committed > 0)
        async with raw_peer(ircd) as peer:
            await peer.link()
            said = [line.params[0] for line in peer.seen if line.verb == "PRIVMSG"]
            assert said == ["#all"]


async def test_the_last_one_to_leave_a_local_channel_is_not_told(tmp_path: Path) -> None:
    links = (LinkConfig(name="thor", secret=SECRET),)
    async with (
        serving(tmp_path, links=links) as ircd,
        registered(ircd.port, "spark-ori") as ori,
        raw_peer(ircd) as peer,
    ):
        await peer.link()
        await ori.join("#hidden")
        await ori.ask("MODE #hidden +L")
        await peer.answered()
        await ori.ask("RENAME #hidden #deeper :to hide")
        await ori.ask("PART #deeper")
        await ori.join("#open")
        lines = [str(line) for line in await peer.answered()]
        assert not [line for line in lines if "#hidden" in line or "#deeper" in line]
        assert [line for line in lines if "#open" in line]


async def test_only_operators_draw_borders(chain: Chain) -> None:
    ori, max_ = await chain.client("spark-ori", "#plans"), await chain.client("spark-max", "#plans")
    assert [m.verb for m in await max_.ask("MODE #plans +L")] == ["482"]
    await ori.sync()
    assert [m.verb for m in await ori.ask("MODE #plans +S :,")] == ["696"]
    assert [m.verb for m in await ori.ask("MODE #plans +S no-name")] == ["696"]
    assert [m.params for m in await ori.ask("MODE #plans +S Odin.local,thor") if m.verb == "MODE"] == [
        ("#plans", "+S", "odin,spark,thor")
    ]
    assert await ori.ask("MODE #plans +S odin,thor") == []


def test_a_registered_channel_keeps_its_borders() -> None:
    channel = Channel("#plans", 1.0, flags={"P", "L"}, founder="ori", shared=("odin", "spark"))
    [read] = parse(dump([dump_channel(channel)]))
    assert read.shared == ("odin", "spark") and "L" in read.flags
