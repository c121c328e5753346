"""A lost link is a netsplit for its users, and its return a netjoin; a ring that loses a link loses nobody."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.federation import splits
from culture.protocol.message import Message
from tests.federation.meshes import Servers, linked
from tests.support.client import Client
from tests.support.mesh import eventually

LINE = (("thor", "spark"), ("odin", "thor"))
RING = (*LINE, ("spark", "odin"))


@pytest.fixture
async def line(tmp_path: Path) -> AsyncIterator[Servers]:
    """spark – thor – odin."""
    async with linked(tmp_path, ("spark", "thor", "odin"), LINE) as servers:
        yield servers


async def batch(client: Client, kind: str) -> tuple[Message, list[Message]]:
    """The next batch of this type: its first line, and what is in it."""
    opening = await client.expect("BATCH", None, kind)
    name, rows = opening.params[0][1:], []
    while (row := await client.receive()).params != (f"-{name}",):
        if row.tags.get("batch") == name:
            rows.append(row)
    return opening, rows


@pytest.mark.fault("D19")
@pytest.mark.requirement("E04", "E15")
async def test_a_lost_link_is_one_batch_for_those_who_know_batches(line: Servers) -> None:
    """The two names are those of the ends of the link that broke, also for servers behind it (IRCv3 netsplit)."""
    ori = await line.client("spark-ori", "#room", caps="batch")
    plain = await line.client("spark-plain", "#room")
    await line.client("thor-bob", "#room", "#other")
    await line.client("odin-eve", "#room")
    await line.whole()
    await ori.sync()
    await plain.sync()
    await line.cut("thor", "spark")
    opening, rows = await batch(ori, "netsplit")
    assert opening.params[1:] == ("netsplit", "spark", "thor")
    assert {(row.verb, row.source.partition("!")[0], row.params) for row in rows} == {
        ("QUIT", "thor-bob", ("spark thor",)),
        ("QUIT", "odin-eve", ("spark thor",)),
    }
    seen = [await plain.expect("QUIT"), await plain.expect("QUIT")]
    assert {row.source.partition("!")[0] for row in seen} == {"thor-bob", "odin-eve"}
    assert not any(row.tags for row in seen)
    line.heal("thor", "spark")
    came: dict[str, Message] = {}
    while len(came) < 2:
        opening, rows = await batch(ori, "netjoin")
        assert opening.params[1] == "netjoin" and len(opening.params) == 4
        came |= {row.source.partition("!")[0]: row for row in rows if row.verb == "JOIN"}
    assert set(came) == {"thor-bob", "odin-eve"}
    await line.whole()
    assert {row.source.partition("!")[0] for row in await plain.sync() if row.verb == "JOIN"} == {
        "thor-bob",
        "odin-eve",
    }


async def test_a_rank_that_comes_back_is_shown(line: Servers) -> None:
    bob = await line.client("thor-bob", "#room")
    await line.whole()
    ori = await line.client("spark-ori", "#room")
    await bob.expect("JOIN", "#room")
    await line.whole()
    await line.cut("thor", "spark")
    await ori.expect("QUIT")
    line.heal("thor", "spark")
    await ori.expect("JOIN", "#room")
    assert (await ori.expect("MODE", "#room")).params[1:] == ("+o", "thor-bob")


async def test_nobody_can_pretend_a_netsplit(line: Servers) -> None:
    ori, eve = await line.client("spark-ori", "#room"), await line.client("odin-eve")
    await line.whole()
    await eve.join("#room")
    await ori.expect("JOIN", "#room")
    eve.send("QUIT :spark thor")
    assert (await ori.expect("QUIT")).params == ("Quit: spark thor",)


async def test_those_who_watch_a_nick_are_told(line: Servers) -> None:
    ori = await line.client("spark-ori")
    await line.client("odin-eve")
    await line.whole()
    ori.send("MONITOR + odin-eve")
    await ori.expect("730")
    await line.cut("thor", "spark")
    assert (await ori.expect("731")).params[1] == "odin-eve"
    line.heal("thor", "spark")
    assert (await ori.expect("730")).params[1].startswith("odin-eve!")


@pytest.mark.fault("D6")
async def test_a_ring_that_loses_a_link_loses_nobody(tmp_path: Path) -> None:
    async with linked(tmp_path, ("spark", "thor", "odin"), RING) as ring:
        ori = await ring.client("spark-ori", "#room", caps="batch")
        bob = await ring.client("thor-bob")
        await ring.whole()
        await bob.join("#room")
        await ori.expect("JOIN", "#room")
        await ring.cut("thor", "spark")
        await eventually(lambda: ring["spark"].parts.network.servers["thor"].hops == 2)
        bob.send("TOPIC #room :the long way")
        await bob.expect("482")
        ori.send("MODE #room -t")
        await bob.expect("MODE", "#room", "-t")
        bob.send("TOPIC #room :the long way")
        assert (await ori.expect("TOPIC", "#room")).params[1] == "the long way"
        ring.heal("thor", "spark")
        await eventually(lambda: ring["spark"].parts.network.servers["thor"].hops == 1)
        bob.send("TOPIC #room :the short way")
        assert (await ori.expect("TOPIC", "#room")).params[1] == "the short way"
        await ring.whole()
        verbs = [row.verb for row in ori.seen]
        assert "QUIT" not in verbs and verbs.count("JOIN") == 2 and "BATCH" not in verbs


async def test_a_big_split_does_not_happen_all_at_once(line: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody else has their turns meanwhile; who comes back in time has never been away."""
    monkeypatch.setattr(splits, "_AT_ONCE", 2)
    ori = await line.client("spark-ori", "#room")
    for number in range(7):
        await line.client(f"thor-u{number}", "#room")
    await line.whole()
    await ori.sync()
    await line.cut("thor", "spark")
    gone = {(await ori.expect("QUIT")).source.partition("!")[0] for _ in range(7)}
    assert gone == {f"thor-u{number}" for number in range(7)}
    await eventually(lambda: len(line["spark"].parts.network.users) == 1)
