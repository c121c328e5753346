"""A peer with a valid secret that means harm: it costs its own link, and neither the mesh nor anybody else's."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from culture.config.links import LinkConfig
from culture.federation import courier, doubts, roster, seen, settings, topology, trust
from culture.federation.roster import Roster
from culture.server.core.changes.channels import LATEST
from culture.server.ircd import IRCd
from tests.federation.raw import EPOCH, SECRET, RawPeer, mesh_of, raw_peer
from tests.support.client import registered
from tests.support.servers import serving
from tests.support.waiting import until

LINKS = (LinkConfig(name="thor", secret=SECRET), LinkConfig(name="odin", secret=SECRET))
HUGE = "9" * 4_000
BEYOND = str(10**20)
"""More than fits in a column of a table."""


@asynccontextmanager
async def two_peers(folder: Path) -> AsyncIterator[tuple[IRCd, RawPeer, RawPeer]]:
    """A server with two peers; a test speaks for both."""
    async with serving(folder, links=LINKS) as ircd, raw_peer(ircd) as thor, raw_peer(ircd) as odin:
        await odin.link("odin", log="odin", epoch="0d100000")
        await thor.link()
        thor.arrive("thor-bob")
        thor.join("thor-bob", "#general")
        await thor.answered()
        yield ircd, thor, odin


async def still_links(ircd: IRCd, odin: RawPeer, name: str = "odin") -> bool:
    """Does the federation work, for the one who did nothing? What waits is written first."""
    await until(lambda: not mesh_of(ircd).log.waiting)
    await odin.answered()
    return not ircd.parts.skills.off and name in mesh_of(ircd).links


@pytest.mark.fault("D15")
@pytest.mark.parametrize(
    "line",
    [
        f"ACK 0 {BEYOND}",
        f"ACK {BEYOND} 0",
        "ACK 0 -1",
        f"EOBACKFILL {BEYOND}",
        f"GAP {HUGE}",
        f"RESUME * {BEYOND}",
        f":thor ROSTER thor {EPOCH} {HUGE}",
        f"@id=thor.{EPOCH}.90;at=1;n=1;got=-{HUGE[:300]} :thor-bob!user@host PRIVMSG #general :old",
        f"@id=thor.{EPOCH}.90;at=1;n=1;got={HUGE} :thor-bob!user@host PRIVMSG #general :new",
        f"@id=thor.{EPOCH}.91;at=1;v={HUGE} :thor-bob!user@host TOPIC #general :mine for ever",
        f"@id=thor.{EPOCH}.92;at=1;v=-1 :thor-bob!user@host TOPIC #general :mine for ever",
        f"@id=thor.{EPOCH}.93;at=1;c=-{HUGE} :thor-bob!user@host JOIN #other +o :Bob",
        f'@id=thor.{EPOCH}.93;at=1;v=1;c={HUGE} :thor-bob!user@host MODE #general :[[true,"m",null]]',
        f"@id=thor.{EPOCH}.94;at=1 :thor-bob!user@host MODE #general :{'[' * 100_000}",
        f":thor CHANNEL #general {HUGE} 1 :{{}}",
        f":thor CHANNEL #general 1 {HUGE} :{{}}",
        f':thor CHANNEL #general 1 1 :{{"founded":{HUGE},"lives":true}}',
        ':thor CHANNEL #general 1 1 :{"founded":1e400,"lives":true}',
        ':thor CHANNEL #general 1 1 :{"topic":["t","thor",NaN],"marks":{"topic":[1,NaN,"thor",1]}}',
        f':thor CHANNEL #general 1 1 :{{"topic":["t","thor",1],"marks":{{"topic":[{HUGE},1,"thor",1]}}}}',
        f':thor CHANNEL #general 1 1 :{{"topic":["t","thor",1],"marks":{{"topic":[1,1,"thor",{HUGE}]}}}}',
        f':thor CHANNEL #general 1 1 :{{"limit":{HUGE},"marks":{{"l":[1,1,"thor",1]}}}}',
        f"@id=thor.{'e' * 5_000}.95;at=1;n=1 :thor-bob!user@host PRIVMSG #general :hello",
        f"@n=1;seal={'0' * 32};id=thor.{'e' * 5_000}.95;at=1;kind=bot :thor-bob!user@host PRIVMSG #general :hello",
        f":thor ROSTER thor {'e' * 5_000} 99",
        f"@peers=spark;epoch={'e' * 5_000} :thor LINKSTATE thor 99 :x",
        ":thor MEMBERS general thor-bob",
        ":thor MEMBERS #a,b thor-bob",
    ],
)
async def test_a_number_or_name_that_is_none_ends_the_link(tmp_path: Path, line: str) -> None:
    async with two_peers(tmp_path) as (ircd, thor, odin):
        thor.send(line)
        said = await thor.ended()
        assert said[-1].verb == "ERROR" and "Protocol error" in said[-1].params[0]
        assert await still_links(ircd, odin)


@pytest.mark.fault("D15")
@pytest.mark.parametrize(
    "meta",
    ['{"a":"\\ud800"}', '{"\\ud800":"a"}', '{"a b":"c"}', '{"":"c"}', '{"a":1}', "[]", "5", "[" * 100_000],
)
async def test_a_roster_with_what_fits_in_no_line_ends_the_link(tmp_path: Path, meta: str) -> None:
    async with two_peers(tmp_path) as (ircd, thor, odin):
        thor.tell(f"ROSTER thor {EPOCH} 99")
        escaped = meta.replace("\\", "\\\\").replace(" ", "\\s")
        thor.send(f"@at=1;meta={escaped} :thor NICK thor-eve 1 user host thor + :Eve")
        thor.tell("ENDROSTER thor")
        said = await thor.ended()
        assert said[-1].verb == "ERROR" and "Protocol error" in said[-1].params[0]
        assert await still_links(ircd, odin)


@pytest.mark.fault("D15")
async def test_a_position_that_no_log_has_is_no_question_to_the_disk(tmp_path: Path) -> None:
    async with serving(tmp_path, links=LINKS) as ircd, raw_peer(ircd) as odin, raw_peer(ircd) as thor:
        await odin.link("odin", log="odin", epoch="0d100000")
        thor.greet()
        await thor.expect("SERVER")
        thor.send(f"LINK 1 log {EPOCH} 1")
        thor.send(f"RESUME {mesh_of(ircd).log.id} {BEYOND}")
        await thor.ended()
        assert await still_links(ircd, odin)


@pytest.mark.fault("D13")
async def test_what_is_in_doubt_can_be_told_again(tmp_path: Path) -> None:
    async with two_peers(tmp_path) as (ircd, thor, odin):
        thor.send("@id=odin.0d100000.5;at=1773914400000000;n=7 :odin-eve!user@host PRIVMSG #general :a\0b")
        await thor.ended()
        mesh_of(ircd).messages.ask_owners(float("inf"))
        assert await still_links(ircd, odin)


async def test_a_version_that_leaves_no_later_one_is_outdone_all_the_same(tmp_path: Path) -> None:
    async with two_peers(tmp_path) as (ircd, thor, odin), registered(ircd.port, "spark-ori") as ori:
        await ori.join("#ours")
        said = {"topic": ["theirs", "thor-bob", 1.0], "marks": {"topic": [10**18 - 1, 1.0, "thor", 1]}}
        thor.send(f":thor CHANNEL #ours 1 1 :{json.dumps(said)}")
        await ori.expect("TOPIC")
        for text in ("ours", "ours again"):
            ori.send(f"TOPIC #ours :{text}")
            told = await odin.expect("TOPIC")
            assert told.tags["v"] == str(LATEST)
            assert told.params[1] == text
        assert await still_links(ircd, odin)


class TestBorders:
    """What does not cross a link does not cross it in a roster either."""

    @pytest.mark.fault("D13")
    async def test_a_restricted_peer_puts_its_users_in_shared_channels_alone(self, tmp_path: Path) -> None:
        link = LinkConfig(name="thor", secret=SECRET, trust="restricted", channels=("#shared",))
        async with serving(tmp_path, links=(link,)) as ircd, registered(ircd.port, "spark-ori") as ori:
            await ori.join("#secret")
            assert await self.places(ircd) == {"#shared"}

    @pytest.mark.parametrize("border", ["+L", "+S odin"])
    async def test_nobody_comes_into_a_channel_behind_a_border(self, tmp_path: Path, border: str) -> None:
        async with serving(tmp_path, links=LINKS) as ircd, registered(ircd.port, "spark-ori") as ori:
            await ori.join("#secret")
            ori.send(f"MODE #secret {border}")
            await ori.expect("MODE", "#secret")
            assert await self.places(ircd) == {"#shared", "#invented"}

    async def places(self, ircd: IRCd) -> set[str]:
        """Where somebody is whose server says that they are everywhere."""
        async with raw_peer(ircd) as thor:
            await thor.link()
            thor.tell(f"ROSTER thor {EPOCH} 5")
            thor.tell("NICK thor-bob 1 user host thor + :Bob")
            for channel in ("#secret", "#invented", "#shared"):
                thor.tell(f"NJOIN {channel} 1 +n @thor-bob")
            thor.tell("ENDROSTER thor")
            await thor.answered()
            bob = ircd.parts.network.user("thor-bob")
            assert bob is not None
            return {channel.name for channel in bob.channels}


class TestMadeUpServers:
    """Servers that a peer makes up keep no others out."""

    async def test_there_is_always_room_for_who_is_linked(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(topology, "MOST_SERVERS", 20)
        async with serving(tmp_path, links=LINKS) as ircd, raw_peer(ircd) as thor, raw_peer(ircd) as odin:
            await thor.link()
            names = [f"x{number}" for number in range(30)]
            thor.send(f"@peers=spark,{','.join(names)};epoch={EPOCH} :thor LINKSTATE thor 5 :x")
            for name in names:
                thor.send(f"@peers=thor;epoch=b :{name} LINKSTATE {name} 7 :x")
            await thor.answered()
            await odin.link("odin", log="odin", epoch="0d100000")
            await odin.answered()
            assert ircd.parts.network.servers["odin"].hops == 1
            assert len(ircd.parts.network.servers) <= 21

    def test_who_cannot_be_reached_gives_way(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(topology, "MOST_SERVERS", 2)
        mesh = topology.Topology("spark")
        mesh.direct.add("thor")
        for name, peers in (("thor", {"spark"}), ("x1", {"x2"}), ("odin", {"thor"})):
            mesh.take(name, topology.LinkState(1, frozenset(peers), name, ""))
            mesh.reckon()
        assert set(mesh.states) == {"thor", "odin"}

    @pytest.mark.fault("D13")
    async def test_who_has_no_say_does_not_keep_the_real_one_out(self, tmp_path: Path) -> None:
        links = tuple(LinkConfig(name=name, secret=SECRET, trust="no_authority") for name in ("thor", "odin"))
        async with serving(tmp_path, links=links) as ircd, raw_peer(ircd) as thor, raw_peer(ircd) as odin:
            network = ircd.parts.network
            await thor.link()
            thor.send("@peers=spark,odin :thor LINKSTATE thor 5 :x")
            thor.send("@peers=thor;epoch=fa4e :odin LINKSTATE odin 7 :x")
            thor.tell("ROSTER odin fa4e 5", "odin")
            thor.tell("NICK odin-fake 1 user host odin + :Fake", "odin")
            thor.tell("ENDROSTER odin", "odin")
            await thor.answered()
            assert network.user("odin-fake") is not None
            await odin.link("odin", log="odin", epoch="0d100000")
            await odin.answered()
            assert "odin" in mesh_of(ircd).links
            assert network.user("odin-fake") is None

    async def test_operators_hear_once_of_a_second_server_of_a_name(self, tmp_path: Path) -> None:
        async with two_peers(tmp_path) as (ircd, thor, odin):
            odin.send("@peers=spark,frey;epoch=0d100000 :odin LINKSTATE odin 6 :x")
            odin.send("@peers=odin;epoch=aa :frey LINKSTATE frey 7 :x")
            await odin.answered()
            for number in range(50):
                thor.send(f"@peers=thor;epoch=b{number} :frey LINKSTATE frey {number + 10} :x")
            await thor.answered()
            assert ircd.parts.network.servers["frey"].via == "odin"
            assert len(mesh_of(ircd).presence._namesakes._told) == 1


@pytest.mark.fault("D13")
async def test_nobody_speaks_as_a_server_of_almost_our_name(tmp_path: Path) -> None:
    async with two_peers(tmp_path) as (ircd, thor, _), registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        thor.send(f"@id=SPARK.{EPOCH}.77;at=1773914400000000;n=5 :SPARK NOTICE #general :I am the server")
        await thor.ended()
        assert not [row for row in await ori.sync() if row.verb == "NOTICE" and row.params[0] == "#general"]


async def test_what_is_asked_twice_in_one_breath_is_told_once(tmp_path: Path) -> None:
    async with two_peers(tmp_path) as (_, _, odin):
        await odin.answered()
        odin.send_raw(b":odin WANT thor\r\n" * 50)
        assert [row.params[0] for row in await odin.answered() if row.verb == "ROSTER"] == ["thor"]
        odin.send(":odin WANT thor")
        assert [row.params[0] for row in await odin.answered() if row.verb == "ROSTER"] == ["thor"]


@pytest.mark.parametrize("told", ["{}", '{"founded":1}'])
async def test_a_channel_is_no_older_by_what_is_said_of_another(tmp_path: Path, told: str) -> None:
    async with two_peers(tmp_path) as (ircd, thor, _), registered(ircd.port, "spark-ori") as ori:
        await ori.join("#ours")
        channel = ircd.parts.network.channel("#ours")
        assert channel is not None
        before = channel.created, channel.founded
        thor.send(f":thor CHANNEL #ours 1 1 :{told}")
        await thor.answered()
        assert (channel.created, channel.founded) == before


@pytest.mark.fault("D15")
@pytest.mark.parametrize(
    ("line", "source"),
    [("NICK thor-bob 1 user host thor + :Bob", "thor"), ("NICK thor-bob", "thor-eve!user@host")],
)
async def test_a_member_whose_nick_another_takes_is_gone(tmp_path: Path, line: str, source: str) -> None:
    async with two_peers(tmp_path) as (ircd, thor, odin):
        network, channel = ircd.parts.network, ircd.parts.network.channel("#general")
        assert channel is not None
        thor.arrive("thor-eve")
        thor.join("thor-eve", "#general")
        thor.event(line, source)
        thor.join("thor-bob", "#general")
        await thor.answered()
        assert "thor-bob" in {user.nick for user in channel.members}
        assert all(network.user(user.nick) is user for user in channel.members)
        thor.writer.close()
        await until(lambda: not channel.members)
        assert await still_links(ircd, odin)


PLAIN = f"seal={'0' * 32};id=thor.{EPOCH}.{{}};at=1773914400000000;kind=agent :thor-bob!user@host PRIVMSG"


@pytest.mark.fault("D15")
async def test_a_name_that_no_channel_has_is_not_kept(tmp_path: Path) -> None:
    async with two_peers(tmp_path) as (ircd, thor, odin):
        thor.send(f"@n=1;{PLAIN.format(70)} #general :hello")
        thor.send(f"@n=2;{PLAIN.format(71)} #{'x' * 9_000} :hello")
        await thor.ended()
        assert [entry.channel for entry in mesh_of(ircd).log.recent] == ["#general"]
        assert await still_links(ircd, odin)


@pytest.mark.fault("D15")
async def test_nobody_says_tens_of_thousands_of_lines_at_once(tmp_path: Path) -> None:
    async with two_peers(tmp_path) as (ircd, thor, odin):
        lines = json.dumps([["x", False]] * 20_000, separators=(",", ":"))
        stamp = f"id=thor.{EPOCH}.77;at=1773914400000000;n=5"
        thor.send(f"@{stamp};lines={lines} :thor-bob!user@host PRIVMSG #general :")
        await thor.ended()
        assert not mesh_of(ircd).log.recent
        assert await still_links(ircd, odin)


async def test_what_comes_with_the_greeting_is_heard(tmp_path: Path) -> None:
    async with serving(tmp_path, links=LINKS) as ircd, raw_peer(ircd) as thor:
        greeting = f"PASS {SECRET}\r\nSERVER thor 1 :x\r\nLINK 1 log {EPOCH} 1\r\nRESUME * 0\r\n:thor ROS"
        thor.send_raw(greeting.encode())
        await thor.expect("EOBACKFILL")
        thor.send_raw(f"TER thor {EPOCH} 0\r\n:thor ENDROSTER thor\r\n".encode())
        await thor.answered()
        assert "thor" in mesh_of(ircd).known


async def test_a_channel_remembers_only_so_much_of_what_it_has_no_more(tmp_path: Path) -> None:
    """Else a channel could become too much for any link to tell."""
    async with two_peers(tmp_path) as (ircd, thor, odin):
        channel = ircd.parts.network.channel("#general")
        assert channel is not None
        for number in range(2_500):
            for value in (" :x", ""):
                thor.event(f"METADATA #general key{number} *{value}", "thor-bob!user@host", f"v={number + 2}")
        await thor.answered()
        assert not channel.metadata and 1 < len(channel.marks) <= 1_000
        marks = {f"b:*!*@{number}": [number + 2, 1.0, "thor", 1] for number in range(5_000)}
        thor.send(f":thor CHANNEL #general 1 1 :{json.dumps({'marks': marks})}")
        await thor.answered()
        assert "b:*!*@4999" in channel.marks and len(channel.marks) <= 1_000
        assert await still_links(ircd, odin)


class TestPassedOn:
    """What somebody behind a peer has done is no fault of the peer: its link stands."""

    @pytest.mark.fault("D15")
    @pytest.mark.parametrize(
        ("line", "tags"),
        [
            (f"PRIVMSG spark-ori :{'x' * 700}", ""),
            ("PRIVMSG spark-ori :hello", "account=a!b"),
            (f"PRIVMSG odin-eve :{'x' * 700}", ""),
        ],
    )
    async def test_a_private_message_that_is_none_is_taken_away(self, tmp_path: Path, line: str, tags: str) -> None:
        async with two_peers(tmp_path) as (ircd, thor, odin), registered(ircd.port, "spark-ori") as ori:
            thor.event(line, "frey-eve!user@host", tags, origin="frey")
            await thor.expect("CUSTODY", f"frey.{EPOCH}.{thor.seq}")
            assert "thor" in mesh_of(ircd).links
            assert not [row for row in await ori.sync() if row.verb == "PRIVMSG"]
            assert not [row for row in await odin.answered() if row.verb == "PRIVMSG"]

    @pytest.mark.fault("D15")
    async def test_who_sends_one_of_its_own_users_is_cut(self, tmp_path: Path) -> None:
        async with two_peers(tmp_path) as (ircd, thor, odin):
            thor.event(f"PRIVMSG odin-eve :{'x' * 700}", "thor-bob!user@host")
            await thor.ended()
            assert await still_links(ircd, odin)

    @pytest.mark.fault("D15")
    async def test_typing_that_is_none_is_not_passed_on(self, tmp_path: Path) -> None:
        async with two_peers(tmp_path) as (_, thor, odin):
            thor.event("TAGMSG odin-eve", "spark-ori!user@host", "+typing=active")
            await thor.ended()
            assert not [row for row in await odin.answered() if row.verb == "TAGMSG"]


async def test_private_messages_for_nowhere_do_not_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "_MOST_HELD", 1_000)
    async with two_peers(tmp_path) as (ircd, thor, _):
        for _number in range(50):
            thor.event("PRIVMSG nowhere-eve :" + "x" * 100, "thor-bob!user@host")
        await thor.answered()
        held = mesh_of(ircd).log.held["nowhere"]
        assert 1 <= len(held) < 10
        await until(lambda: not mesh_of(ircd).log.waiting)
        given = [row for row in await thor.answered() if row.verb == "CUSTODY"]
        assert len(given) <= len(held)
        mesh_of(ircd).log.release(next(iter(held.values())))
        thor.event("PRIVMSG nowhere-eve :room again", "thor-bob!user@host")
        await thor.expect("CUSTODY", f"thor.{EPOCH}.{thor.seq}")


class TestRoom:
    """What peers make up does not fill the memory."""

    async def one_too_many(self, ircd: IRCd, bad: RawPeer, good: RawPeer, name: str = "odin") -> None:
        said = await bad.ended()
        assert "more than a mesh has" in said[-1].params[0]
        assert len(ircd.parts.network.users) <= 5 and len(ircd.parts.network.channels) <= 5
        assert await still_links(ircd, good, name)

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(trust, "MOST_USERS", 5)
        monkeypatch.setattr(trust, "MOST_CHANNELS", 5)

    async def test_for_users(self, tmp_path: Path) -> None:
        async with two_peers(tmp_path) as (ircd, thor, odin):
            for number in range(10):
                thor.arrive(f"thor-b{number}")
            await self.one_too_many(ircd, thor, odin)

    async def test_for_channels(self, tmp_path: Path) -> None:
        async with two_peers(tmp_path) as (ircd, thor, odin):
            for number in range(10):
                thor.join("thor-bob", f"#c{number}")
            await self.one_too_many(ircd, thor, odin)

    async def test_in_a_roster(self, tmp_path: Path) -> None:
        async with two_peers(tmp_path) as (ircd, thor, odin):
            thor.tell(f"ROSTER thor {EPOCH} 99")
            for number in range(10):
                thor.tell(f"NICK thor-b{number} 1 user host thor + :Bob")
            await self.one_too_many(ircd, thor, odin)

    async def test_for_channels_in_a_roster(self, tmp_path: Path) -> None:
        async with two_peers(tmp_path) as (ircd, thor, odin):
            thor.tell(f"ROSTER thor {EPOCH} 99")
            thor.tell("NICK thor-bob 1 user host thor + :Bob")
            for number in range(10):
                thor.tell(f"NJOIN #c{number} 1 +n thor-bob")
            await self.one_too_many(ircd, thor, odin)

    async def test_over_all_rosters(self, tmp_path: Path) -> None:
        async with two_peers(tmp_path) as (ircd, thor, odin):
            odin.send("@peers=spark,frey :odin LINKSTATE odin 6 :x")
            odin.send("@peers=odin;epoch=aa :frey LINKSTATE frey 7 :x")
            for server, nicks in (("odin", "abc"), ("frey", "def")):
                odin.tell(f"ROSTER {server} {EPOCH} 99", server)
                for nick in nicks:
                    odin.tell(f"NICK {server}-{nick} 1 user host {server} + :x", server)
                odin.tell(f"ENDROSTER {server}", server)
            await self.one_too_many(ircd, odin, thor, "thor")

    async def test_for_channels_that_cross_again(self, tmp_path: Path) -> None:
        async with two_peers(tmp_path) as (ircd, thor, odin):
            for number in range(10):
                thor.tell(f"MEMBERS #c{number} thor-bob")
            await self.one_too_many(ircd, thor, odin)

    async def test_for_the_text_of_a_roster(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(roster, "_LARGEST", 1_000)
        async with two_peers(tmp_path) as (ircd, thor, odin):
            thor.tell(f"ROSTER thor {EPOCH} 99")
            thor.tell(f"NICK thor-b 1 user host thor + :{'x' * 1_000}")
            await self.one_too_many(ircd, thor, odin)

    async def test_for_links_of_a_server(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(topology, "MOST_PEERS", 3)
        async with two_peers(tmp_path) as (ircd, thor, odin):
            thor.send(f"@peers=spark,a,b,c;epoch={EPOCH} :thor LINKSTATE thor 99 :x")
            assert "more than there are" in (await thor.ended())[-1].params[0]
            assert await still_links(ircd, odin)

    async def test_for_ids(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(seen, "MOST_LINES", 5)
        async with two_peers(tmp_path) as (ircd, thor, odin), registered(ircd.port, "spark-ori") as ori:
            await ori.join("#general")
            for number in range(10):
                thor.event(f"PRIVMSG #general :{number}", "frey-eve!user@host", origin="frey", epoch=f"e{number}")
            await thor.answered()
            assert len(mesh_of(ircd).log.seen._lines) <= 5 and "thor" in mesh_of(ircd).links
            ori.send("PRIVMSG #general :there is room for ours")
            await thor.expect("PRIVMSG", "#general", "there is room for ours")
            thor.event("PRIVMSG #general :hello", "thor-bob!user@host", epoch="new")
            assert "than a mesh has" in (await thor.ended())[-1].params[0]
            assert await still_links(ircd, odin)

    async def test_for_who_is_typing_nowhere(self, tmp_path: Path) -> None:
        async with two_peers(tmp_path) as (ircd, thor, odin):
            for number in range(10):
                thor.event("TAGMSG #general", f"x{number}-eve!user@host", "+typing=active", origin=f"x{number}")
            thor.event("TAGMSG #general", "thor-bob!user@host", "+typing=active")
            await thor.answered()
            assert list(mesh_of(ircd).relay._last_passed) == ["thor"]
            assert await still_links(ircd, odin)

    async def test_for_what_is_in_doubt(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(doubts, "MOST_NOTED", 5)
        async with two_peers(tmp_path) as (ircd, thor, odin):
            for number in range(10):
                thor.event("PRIVMSG #general :forged", "odin-eve!user@host", f"n={number + 1}", origin="odin")
            assert "in doubt" in (await thor.ended())[-1].params[0]
            assert "thor" not in mesh_of(ircd).log.cursors
            assert await still_links(ircd, odin)


class TestToldOn:
    """What one peer may say, the next one may hear: else the second would lose its link for what the first has said."""

    MODES = json.dumps([[True, "b", f"{number}!*@*"] for number in range(450)], separators=(",", ":"))

    @pytest.mark.parametrize(
        "line",
        [
            f"TOPIC #general :{'x' * 700}",
            f"AWAY :{'x' * 700}",
            f"METADATA thor-bob key * :{'x' * 700}",
            f"METADATA #general key * :{'x' * 700}",
            f"METADATA #general {'k' * 599} * :x",
            f'MODE #general :[[true,"b","{"x" * 599}"]]',
            'MODE #general :[[true,"b",":x"]]',
            'MODE #general :[[true,"k",":x"]]',
            f"CHGHOST {'u' * 400} host",
            f"CHGHOST user {'h' * 400}",
        ],
    )
    async def test_what_does_not_fit_is_not_taken(self, tmp_path: Path, line: str) -> None:
        async with two_peers(tmp_path) as (ircd, thor, odin):
            thor.event(line, "thor-bob!user@host", "v=9")
            assert "Protocol error" in (await thor.ended())[-1].params[0]
            assert await still_links(ircd, odin)

    async def test_what_is_taken_fits(self, tmp_path: Path) -> None:
        """The longest of everything, and more of it than there is room for."""
        bob = "thor-bob!user@host"
        async with two_peers(tmp_path) as (ircd, thor, odin):
            for text in (f"TOPIC #general :{'x' * 590}", f"AWAY :{'é' * 295}", f"CHGHOST {'u' * 100} {'h' * 100}"):
                thor.event(text, bob, "v=9")
            thor.event(f"MODE #general :{self.MODES}", bob, "v=10")
            for number in range(100):
                thor.event(f'MODE #general :[[true,"e","{number}{"x" * 580}"]]', bob, "v=11")
                for target in ("#general", "thor-bob"):
                    thor.event(f"METADATA {target} {'k' * 500}{number} * :{chr(1) * 590}", bob, "v=12")
            told = {"lists": {"I": {f"{number}!*@{'i' * 500}": [bob, 1.0] for number in range(500)}}}
            told["marks"] = {f"I:{mask}": [13, 1.0, "thor", 1] for mask in told["lists"]["I"]}
            thor.send(f":thor CHANNEL #general 1 13 :{json.dumps(told)}")
            await thor.answered()
            channel = ircd.parts.network.channel("#general")
            assert channel is not None and len(channel.lists["b"]) == 400 and len(channel.metadata or ()) > 10
            odin.send(":odin WANT thor")
            odin.send(":odin WANT #general")
            rows, read = await odin.answered(), Roster("thor", "thor", EPOCH, 1)
            assert max(len(bytes(row)) for row in rows) < 1 << 20
            for row in rows:
                if row.verb == "NICK":
                    read.take(row)
                elif row.verb == "CHANNEL" and row.params[0] == "#general":
                    settings.read(row)
            assert read.people["thor-bob"].away == "é" * 295 and read.people["thor-bob"].metadata


async def test_who_lies_all_the_time_does_not_fill_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with two_peers(tmp_path) as (ircd, thor, odin):
        for number in range(200):
            thor.event(f"PRIVMSG #general :{number}", "spark-ori!user@host", "n=1", origin="spark")
        await thor.answered()
        assert await still_links(ircd, odin)
    said = [each for each in caplog.messages if "under our seal" in each]
    assert 1 <= len(said) <= 20 and any("not logged any more" in each for each in caplog.messages)
