"""A lost link is a netsplit for its users, and its return a netjoin; a ring that loses a link loses nobody."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.config.links import LinkConfig
from culture.federation import splits
from culture.protocol.message import Message
from tests.federation.meshes import Servers, linked
from tests.federation.raw import EPOCH, SECRET, RawPeer, raw_peer
from tests.support.client import Client, registered
from tests.support.servers import serving
from tests.support.waiting import until

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


async def test_who_came_in_again_while_no_link_told_of_it_has_no_old_rank(tmp_path: Path) -> None:
    """A server that stops and starts is noticed by all but those who are cut off from it at that time."""
    links = (LinkConfig(name="thor", secret=SECRET),)
    async with (
        serving(tmp_path, links=links) as ircd,
        registered(ircd.port, "spark-ori") as ori,
        raw_peer(ircd) as thor,
    ):
        await thor.link()
        _tell_roster(thor, 1, "@j=1:1000000:1 :thor NJOIN #room 1000000 +nt @thor-bob")
        await thor.answered()
        await ori.join("#room")
        assert await _members(ori) == {"@thor-bob", "spark-ori"}
        _tell_roster(thor, 9, "@j=4:2000000:8 :thor NJOIN #room 1000000 +nt thor-bob")
        await ori.expect("MODE", "#room", "-o", "thor-bob")
        assert await _members(ori) == {"thor-bob", "spark-ori"}
        _tell_roster(thor, 9, "@j=1:1000000:1 :thor NJOIN #room 1000000 +nt @thor-bob")
        await thor.answered()
        assert await _members(ori) == {"thor-bob", "spark-ori"}, "a join from before was taken"


def _tell_roster(thor: RawPeer, version: int, members: str) -> None:
    """Say that thor-bob is here, and in a channel."""
    for line in (f"ROSTER thor {EPOCH} {version}", "NICK thor-bob 1 user host thor + :Bob"):
        thor.tell(line)
    thor.send(members)
    thor.tell("ENDROSTER thor")


async def _members(client: Client) -> set[str]:
    client.send("NAMES #room")
    return set((await client.expect("353")).params[-1].split())


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
        await until(lambda: ring["spark"].parts.network.servers["thor"].hops == 2)
        bob.send("TOPIC #room :the long way")
        await bob.expect("482")
        ori.send("MODE #room -t")
        await bob.expect("MODE", "#room", "-t")
        bob.send("TOPIC #room :the long way")
        assert (await ori.expect("TOPIC", "#room")).params[1] == "the long way"
        ring.heal("thor", "spark")
        await until(lambda: ring["spark"].parts.network.servers["thor"].hops == 1)
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
    await until(lambda: len(line["spark"].parts.network.users) == 1)


@pytest.mark.fault("D8")
async def test_who_was_called_on_the_other_side_of_a_split_is_called_when_it_ends(tmp_path: Path) -> None:
    """Where it was said nobody knew then that they are in the channel."""
    async with linked(tmp_path, ("spark", "thor"), [("spark", "thor")]) as servers:
        tagged = await servers.client("spark-ori", "#x", caps="message-tags agentirc.dev/mentions")
        plain = await servers.client("spark-bob", "#x")
        ada = await servers.client("thor-ada", "#x")
        await servers.whole()
        await servers.cut("spark", "thor")
        ada.send("PRIVMSG #x :@spark-ori and @spark-bob, look")
        await ada.sync()
        servers.heal("spark", "thor")
        said = await tagged.expect("PRIVMSG", "#x")
        assert said.tags["agentirc.dev/mentions"] == "spark-ori,spark-bob"
        await plain.expect("NOTICE", "spark-bob", where=lambda line: "thor-ada mentioned you in #x" in line.params[1])


@pytest.mark.fault("B1")
async def test_a_server_s_users_are_too_many_for_no_slow_client(tmp_path: Path) -> None:
    """B1: thousands who come and go at once count apart from what fills a client's queue."""
    link, crowd = LinkConfig(name="thor", secret=SECRET), [f"thor-member{number}" for number in range(5_000)]
    async with serving(tmp_path, links=(link,), limits={"send_queue": 4_096}) as ircd, raw_peer(ircd) as thor:
        await thor.link()
        async with registered(ircd.port, "spark-ori") as ori:
            await ori.join("#room")
            [session] = ircd.parts.sessions
            # Otherwise the kernel would take megabytes before anything waits.
            session.connection._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
            thor.tell(f"ROSTER thor {EPOCH} 5")
            for nick in crowd:
                thor.tell(f"NICK {nick} 1 user host thor + :Somebody")
            for start in range(0, len(crowd), 200):
                thor.tell(f"NJOIN #room 1 +n {','.join(crowd[start : start + 200])}")
            thor.tell("ENDROSTER thor")
            await thor.answered()
            assert session.connection.waiting > 2 * 4_096 and session in ircd.parts.sessions
            assert sum(row.verb == "JOIN" for row in await ori.sync()) == len(crowd)
            assert not session.connection.extra, "from here on the queue is as long as ever"
            thor.send("ERROR :gone")
            await thor.ended()
            quits = 0
            while quits < len(crowd):
                quits += (await ori.receive()).verb == "QUIT"
