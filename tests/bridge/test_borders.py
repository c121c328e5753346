"""What stays at home is found on the other side neither by a search nor by a program with the bridge."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from culture.config.links import LinkConfig
from culture.server.ircd import IRCd
from tests.bridge.conftest import Bridge
from tests.bridge.program import Refused, over_http
from tests.federation.raw import SECRET
from tests.support.client import Client, registered
from tests.support.servers import serving
from tests.support.waiting import until

BORDERS = {"#local": "+L", "#some": "+S odin"}
OPEN = "#open"


@asynccontextmanager
async def pair(folder: Path) -> AsyncIterator[tuple[IRCd, IRCd]]:
    """spark and thor, linked in full trust."""
    async with serving(folder / "spark", links=(LinkConfig(name="thor", secret=SECRET),)) as spark:
        link = LinkConfig(name="spark", secret=SECRET, address=f"127.0.0.1:{spark.port}")
        async with serving(folder / "thor", name="thor", links=(link,)) as thor:
            await until(lambda: all(len(each.parts.network.servers) == 1 for each in (spark, thor)))
            yield spark, thor


async def has_heard(client: Client, text: str) -> bool:
    """Whether somebody has said this in the open channel."""
    await client.sync()
    return any(line.verb == "PRIVMSG" and line.params == (OPEN, text) for line in client.seen)


async def found(client: Client, channel: str) -> set[str]:
    """What a search finds."""
    rows = await client.ask(f"HISTORY SEARCH {channel} :plan")
    assert rows[-1].verb == "HISTORYEND"
    return {row.params[-1] for row in rows if row.verb == "HISTORY"}


@pytest.mark.fault("D18")
async def test_a_search_and_a_program_find_what_was_said_on_their_own_side_alone(
    tmp_path: Path, bridge: Bridge
) -> None:
    """D18: in both directions; what is not restricted is found by both."""
    async with (
        pair(tmp_path) as (spark, thor),
        registered(spark.port, "spark-ori") as ori,
        registered(thor.port, "thor-bob") as bob,
    ):
        for channel in (*BORDERS, OPEN):
            await ori.join(channel)
            await bob.join(channel)
        await ori.join("#cellar")
        await ori.ask("MODE #cellar +L")

        def members(ircd: IRCd, name: str) -> set[str]:
            channel = ircd.parts.network.channel(name)
            return {user.nick for user in channel.members} if channel is not None else set()

        await until(lambda: all(len(members(each, OPEN)) == 2 for each in (spark, thor)))
        for channel, mode in BORDERS.items():
            await ori.ask(f"MODE {channel} {mode}")
            await until(lambda channel=channel: members(thor, channel) == {"thor-bob"})  # type: ignore[misc]
        for channel in (*BORDERS, OPEN):
            for client, name in ((ori, "ori"), (bob, "bob")):
                await client.ask(f"PRIVMSG {channel} :the plan of {name}")
        for client, other in ((ori, "bob"), (bob, "ori")):
            await until(lambda client=client, other=other: has_heard(client, f"the plan of {other}"))  # type: ignore[misc]
        for client, ircd, name in ((ori, spark, "ori"), (bob, thor, "bob")):
            own, both = {f"the plan of {name}"}, {"the plan of ori", "the plan of bob"}
            async with bridge(ircd.port) as port, over_http(port) as program:
                for channel in (*BORDERS, OPEN):
                    read = (await program.call("read_messages", channel=channel))["messages"]
                    there = (await program.call("get_members", channel=channel))["members"]
                    wanted = both if channel == OPEN else own
                    assert await found(client, channel) == wanted
                    assert {each["text"] for each in read} == wanted
                    people = {each["nick"] for each in there} & {"spark-ori", "thor-bob"}
                    assert people == ({"spark-ori", "thor-bob"} if channel == OPEN else {client.nick})
                if ircd is thor:
                    assert "#cellar" not in await program.call("list_channels")
                    with pytest.raises(Refused):
                        await program.call("read_messages", channel="#cellar")
