"""What a peer is believed: of its own users what its link's trust says, of ours and of other peers' nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.config.links import LinkConfig
from culture.federation.belief import believed, kind_of, qualified
from culture.federation.codec import Garbled
from culture.protocol.modes import ModeChange
from culture.server.core.ids import EventId
from culture.server.core.network import Network
from culture.server.events import Arrived, MetadataSet, ModeSet, Renamed, Said
from culture.server.ircd import IRCd
from tests.federation.raw import EPOCH, SECRET, RawPeer, mesh_of, raw_peer
from tests.support.client import Client, connected, registered
from tests.support.people import PASSWORD, accounts_of
from tests.support.servers import serving

STAMP = EventId("thor", EPOCH, 7, 1773914400.0)
BOB = "thor-bob!user@host"


@asynccontextmanager
async def linked(folder: Path, trust: str = "full", **settings: Any) -> AsyncIterator[tuple[IRCd, RawPeer]]:
    """A server, and a peer called thor that a test speaks for."""
    channels = ("#shared",) if trust == "restricted" else ()
    links = (
        LinkConfig(name="thor", secret=SECRET, trust=trust, channels=channels),
        LinkConfig(name="odin", secret=SECRET),
        *settings.pop("links", ()),
    )
    async with serving(folder, links=links, **settings) as ircd, raw_peer(ircd) as peer:
        await peer.link()
        yield ircd, peer


async def heard(client: Client, verb: str = "PRIVMSG") -> list[tuple[str, ...]]:
    return [message.params for message in await client.sync() if message.verb == verb]


class TestForged:
    """A peer speaks for its own users, and for those of servers behind it."""

    @pytest.mark.fault("D13")
    async def test_not_for_ours(self, tmp_path: Path) -> None:
        async with linked(tmp_path) as (ircd, peer), registered(ircd.port, "spark-ori") as ori:
            await ori.join("#general")
            for origin in ("spark", "thor"):
                peer.event("PRIVMSG #general :I am ori", "spark-ori!~ori@host", origin=origin)
            said = await peer.ended()
            assert "spark-ori is no user of thor" in said[-1].params[0]
            assert await heard(ori) == []

    @pytest.mark.fault("D13")
    async def test_a_forged_message_of_ours_is_passed_over(self, tmp_path: Path) -> None:
        async with linked(tmp_path) as (ircd, peer), registered(ircd.port, "spark-ori") as ori:
            await ori.join("#general")
            peer.event("PRIVMSG #general :I am ori", "spark-ori!~ori@host", origin="spark")
            peer.event("NICK spark-eve", "spark-ori!~ori@host", origin="spark")
            peer.event("QUIT :gone", "spark-ori!~ori@host", origin="spark")
            await peer.answered()
            assert await heard(ori) == [] and ircd.parts.network.user("spark-ori") is not None

    @pytest.mark.fault("D13")
    async def test_nobody_here_is_shown_as_typing_at_a_peers_word(self, tmp_path: Path) -> None:
        async with (
            linked(tmp_path) as (ircd, peer),
            registered(ircd.port, "spark-ori") as ori,
            registered(ircd.port, "spark-eve", "message-tags") as eve,
        ):
            for each in (ori, eve):
                await each.join("#general")
            peer.event("TAGMSG #general", "spark-ori!~ori@host", "+typing=active", "spark")
            peer.arrive("thor-bob")
            peer.join("thor-bob", "#general")
            peer.event("TAGMSG #general", BOB, "+typing=active")
            typing = await eve.expect("TAGMSG", "#general")
            assert typing.source.startswith("thor-bob!")

    @pytest.mark.fault("D13")
    async def test_what_is_forged_in_our_names_for_one_user_goes_no_further(self, tmp_path: Path) -> None:
        """The next server would believe us."""
        async with (
            linked(tmp_path) as (ircd, thor),
            raw_peer(ircd) as odin,
            registered(ircd.port, "spark-ori", "message-tags") as ori,
        ):
            await odin.link("odin", log="odin", epoch="0d100000")
            odin.event("NICK odin-eve 1 user host odin + :Eve", "odin", epoch="0d100000")
            await odin.answered()
            thor.event("TAGMSG odin-eve", "spark-ori!~ori@host", "+typing=active", "spark")
            await thor.answered()
            await ori.ask("@+typing=done TAGMSG odin-eve")
            typing = await odin.expect("TAGMSG", "odin-eve")
            assert typing.tags["+typing"] == "done"

    @pytest.mark.fault("D13")
    async def test_not_for_a_server_that_is_linked_itself(self, tmp_path: Path) -> None:
        async with (
            linked(tmp_path) as (ircd, thor),
            raw_peer(ircd) as odin,
            registered(ircd.port, "spark-ori") as ori,
        ):
            await ori.join("#general")
            await odin.link("odin", log="odin", epoch="0d100000")
            odin.event("NICK odin-eve 1 user host odin + :Eve", "odin", epoch="0d100000")
            await odin.answered()
            thor.event("PRIVMSG #general :I am eve", "odin-eve!user@host", origin="odin", epoch="0d100000")
            thor.event("QUIT :gone", "odin-eve!user@host", origin="odin", epoch="0d100000")
            await thor.answered()
            assert await heard(ori) == []
            assert ircd.parts.network.user("odin-eve") is not None and "thor" in mesh_of(ircd).links

    @pytest.mark.requirement("E05", "A15")
    @pytest.mark.fault("D24")
    @pytest.mark.parametrize("nick", ["spark-eve", "odin-eve", "eve", "thor"])
    async def test_its_users_have_its_nicks(self, tmp_path: Path, nick: str) -> None:
        """Also those of a server that is away stay its own."""
        async with linked(tmp_path) as (ircd, peer):
            peer.arrive(nick)
            assert "is no nick of thor" in (await peer.expect("ERROR")).params[0]
            assert ircd.parts.network.user(nick) is None

    @pytest.mark.requirement("A14")
    async def test_local_users_have_ours(self, tmp_path: Path) -> None:
        async with linked(tmp_path) as (ircd, _), registered(ircd.port, "spark-ori") as ori:
            assert [m.verb for m in await ori.ask("NICK thor-ori")] == ["432"]

    @pytest.mark.fault("D24")
    @pytest.mark.parametrize(
        "event",
        [
            Renamed(STAMP, BOB, "spark-ori"),
            Renamed(STAMP, BOB, "odin-eve"),
            Renamed(STAMP, BOB, "thor"),
            MetadataSet(STAMP, BOB, "spark-ori", "key", "value"),
            Arrived(STAMP, "thor-bob", "user", "host", "Bob", "spark"),
            Arrived(STAMP, "thor-bob", "spark-ori!x", "host", "Bob", "thor"),
        ],
    )
    def test_what_cannot_be_theirs_ends_the_link(self, event: Any) -> None:
        with pytest.raises(Garbled):
            believed(Network(), event, True)

    @pytest.mark.fault("D15")
    @given(st.booleans(), st.sampled_from("bklSoivLPZ"), st.none() | st.text(max_size=30))
    def test_no_mode_breaks_a_line(self, add: bool, mode: str, param: str | None) -> None:
        try:
            taken = believed(Network(), ModeSet(STAMP, BOB, "#c", (ModeChange(add, mode, param),)), True)
        except Garbled:
            return
        assert taken is None or isinstance(taken, ModeSet)
        for change in taken.changes if taken is not None else ():
            assert change.mode not in "LPZ" and not set(change.param or "") & set(" \r\n\0")

    @pytest.mark.fault("D15")
    async def test_no_tag_breaks_a_line(self, tmp_path: Path) -> None:
        caps = "extended-join account-tag message-tags agentirc.dev/mentions"
        async with linked(tmp_path) as (ircd, peer), registered(ircd.port, "spark-ori", caps) as ori:
            await ori.join("#general")
            peer.arrive("thor-bob")
            peer.join("thor-bob", "#general")
            peer.event("PRIVMSG #general :@spark-ori hi", BOB, r"mentions=spark-ori,x\r\nQUIT;+t=a\r\nb")
            said = await ori.expect("PRIVMSG", "#general")
            assert said.params[1] == "@spark-ori hi"
            peer.event("PRIVMSG #general :hi", BOB, r"account=a\r\nQUIT")
            await peer.ended()
            assert all("QUIT" not in line.params[:1] for line in await ori.sync() if line.verb != "QUIT")


class TestAccounts:
    """Account names are each server's own."""

    @given(st.text(min_size=1), st.sampled_from(["thor", "odin"]))
    def test_none_from_elsewhere_is_one_of_ours(self, name: str, server: str) -> None:
        try:
            known = qualified(name, server)
        except Garbled:
            return
        assert known is not None and known.endswith(f"@{server}") and qualified(known, server) == known
        assert not set(known) & set(" \r\n\0,!") and known[0] != ":"

    async def test_the_namesake_of_a_founder_is_not_the_founder(self, tmp_path: Path) -> None:
        accounts_of(tmp_path, "ori")
        async with linked(tmp_path) as (ircd, peer), connected(ircd.port) as ori:
            ori.send(f"PASS :ori:{PASSWORD}")
            await ori.register("spark-ori")
            await ori.join("#ours")
            await ori.ask("MODE #ours +P")
            peer.arrive("thor-ori", "account=ori;kind=human")
            peer.join("thor-ori", "#ours")
            peer.event('MODE #ours :[[false,"P",null]]', "thor-ori!user@host", "v=99")
            await peer.answered()
            channel, user = ircd.parts.network.channel("#ours"), ircd.parts.network.user("thor-ori")
            assert channel is not None and channel.is_registered and channel.founder == "ori"
            assert user is not None and user.account == "ori@thor" and not channel.is_founder(user)
            rows = [m.params for m in await ori.ask("WHOIS thor-ori") if m.verb == "330"]
            assert [row[2] for row in rows] == ["ori@thor"]

    @pytest.mark.parametrize("letter", ["P", "L"])
    async def test_nobody_elsewhere_registers_our_channels(self, tmp_path: Path, letter: str) -> None:
        async with linked(tmp_path) as (ircd, peer), registered(ircd.port, "spark-ori") as ori:
            await ori.join("#general")
            peer.arrive("thor-ori", "account=ori")
            peer.join("thor-ori", "#general")
            peer.event(f'MODE #general :[[true,"o","thor-ori"],[true,"{letter}",null]]', "thor-ori!user@host", "v=9")
            await peer.answered()
            channel = ircd.parts.network.channel("#general")
            assert channel is not None and letter not in channel.flags and channel.founder is None

    def test_a_change_of_nothing_but_own_modes_is_none(self) -> None:
        changes = (ModeChange(True, "P"), ModeChange(True, "L"))
        assert believed(Network(), ModeSet(STAMP, BOB, "#c", changes), True) is None


class TestNoAuthority:
    """Users who are shown, and have no say."""

    @pytest.mark.fault("D13")
    @pytest.mark.parametrize("kind", ["human", "agent", "unknown", "bot", "king"])
    async def test_their_class_is_unknown(self, tmp_path: Path, kind: str) -> None:
        async with (
            linked(tmp_path, "no_authority") as (ircd, peer),
            registered(ircd.port, "spark-ori", "message-tags") as ori,
        ):
            await ori.join("#general")
            peer.arrive("thor-bob", f"account=bob;kind={kind}")
            peer.join("thor-bob", "#general")
            peer.event("PRIVMSG #general :yes, go ahead", BOB, f"account=bob;kind={kind}")
            shown = (await ori.expect("PRIVMSG")).tags.get("agentirc.dev/class", "unknown")
            assert shown == "unknown"
            user = ircd.parts.network.user("thor-bob")
            assert user is not None and user.kind == shown

    @pytest.mark.fault("D13")
    async def test_nobody_is_a_person_by_their_own_word(self, tmp_path: Path) -> None:
        async with linked(tmp_path, "no_authority") as (ircd, peer):
            peer.arrive("thor-bob")
            await peer.answered()
            ircd.parts.network.know_people(False)
            user = ircd.parts.network.user("thor-bob")
            assert user is not None and user.kind == "unknown"

    async def test_a_person_by_their_own_word_is_one_with_full_trust(self, tmp_path: Path) -> None:
        async with linked(tmp_path) as (ircd, peer):
            peer.arrive("thor-bob")
            await peer.answered()
            user = ircd.parts.network.user("thor-bob")
            assert user is not None and user.kind == "human"

    def test_but_not_where_people_have_accounts(self) -> None:
        network = Network()
        network.know_people(True)
        assert kind_of(network, "human", None, True) == "unknown"
        assert kind_of(network, "human", "ori@thor", True) == "human"

    async def test_they_set_nothing_and_remove_nobody(self, tmp_path: Path) -> None:
        async with linked(tmp_path, "no_authority") as (ircd, peer), registered(ircd.port, "spark-ori") as ori:
            await ori.join("#general")
            peer.arrive("thor-bob")
            peer.join("thor-bob", "#general", "+o")
            for line in (
                'MODE #general :[[true,"m",null],[false,"o","spark-ori"]]',
                "KICK #general spark-ori :out",
                "TOPIC #general :ours now",
                "RENAME #general #theirs :ours now",
            ):
                peer.event(line, BOB, "v=99")
            answer = await peer.expect("MEMBERS")
            assert answer.params == ("#general", "@spark-ori")
            await peer.answered()
            channel = ircd.parts.network.channel("#general")
            assert channel is not None and "m" not in channel.flags and channel.topic is None
            assert {user.nick: rank for user, rank in channel.members.items()} == {"spark-ori": "o", "thor-bob": ""}

    async def test_who_is_banned_here_is_not_heard(self, tmp_path: Path) -> None:
        async with linked(tmp_path, "no_authority") as (ircd, peer), registered(ircd.port, "spark-ori") as ori:
            await ori.join("#general")
            peer.arrive("thor-bob")
            peer.join("thor-bob", "#general")
            await peer.answered()
            await ori.ask("MODE #general +b thor-bob")
            peer.event("PRIVMSG #general :hello", BOB)
            await peer.answered()
            assert await heard(ori) == []

    async def test_they_call_by_name_and_not_everybody(self, tmp_path: Path) -> None:
        said = Said(STAMP, BOB, "PRIVMSG", "#c", "@all and @spark-ada", None, "human", {}, ("spark-ada", "spark-max"))
        network = Network()
        assert believed(network, said, True) == said
        async with linked(tmp_path, "no_authority") as (ircd, _), registered(ircd.port, "spark-ada") as ada:
            await ada.join("#c")
            taken = believed(ircd.parts.network, said, False)
            assert isinstance(taken, Said) and taken.mentions == ("spark-ada",)

    async def test_whom_it_is_passed_on_to_is_told(self, tmp_path: Path) -> None:
        async with linked(tmp_path, "no_authority") as (ircd, thor), raw_peer(ircd) as odin:
            await odin.link("odin", log="odin", epoch="0d100000")
            thor.arrive("thor-bob")
            thor.join("thor-bob", "#general")
            thor.event("PRIVMSG #general :hello", BOB, "kind=human")
            assert "unvouched" in (await odin.expect("PRIVMSG")).tags
            odin.send(":odin WANT thor")
            assert "unvouched" in (await odin.expect("ROSTER", "thor")).tags

    async def test_they_speak_for_nobody_with_a_say_whose_link_is_down(self, tmp_path: Path) -> None:
        """Neither in their names, nor under the ids of what they say next, which would never be heard then."""
        links = (LinkConfig(name="thor", secret=SECRET), LinkConfig(name="odin", secret=SECRET, trust="no_authority"))
        async with (
            serving(tmp_path, links=links) as ircd,
            raw_peer(ircd) as odin,
            registered(ircd.port, "spark-ori") as ori,
        ):
            await ori.join("#general")
            await odin.link("odin", log="odin", epoch="0d100000")
            odin.send("@peers=spark,thor;epoch=0d100000 :odin LINKSTATE odin 7 :x")
            odin.send(f"@peers=odin;epoch={EPOCH} :thor LINKSTATE thor 5 :x")
            for target in ("#general", "spark-ori"):
                odin.event(f"PRIVMSG {target} :a lie", BOB, origin="thor")
            await odin.answered()
            async with raw_peer(ircd) as thor:
                await thor.link()
                thor.arrive("thor-bob")
                thor.seq = 0
                for target in ("#general", "spark-ori"):
                    thor.event(f"PRIVMSG {target} :hello", BOB)
                assert [(await ori.expect("PRIVMSG")).params for _ in range(2)] == [
                    ("#general", "hello"),
                    ("spark-ori", "hello"),
                ]

    @pytest.mark.fault("D13")
    async def test_nor_for_a_server_behind_a_peer_with_a_say(self, tmp_path: Path) -> None:
        """Nothing is configured for that server here: the peer that it is reached over stands for it."""
        links = (LinkConfig(name="thor", secret=SECRET), LinkConfig(name="odin", secret=SECRET, trust="no_authority"))
        async with (
            serving(tmp_path, links=links) as ircd,
            raw_peer(ircd) as thor,
            raw_peer(ircd) as odin,
            registered(ircd.port, "spark-ori") as ori,
        ):
            await ori.join("#general")
            await thor.link()
            thor.send(f"@peers=spark,frey;epoch={EPOCH} :thor LINKSTATE thor 5 :x")
            thor.send("@peers=thor;epoch=f4e70000 :frey LINKSTATE frey 7 :x")
            await thor.answered()
            await odin.link("odin", log="odin", epoch="0d100000")
            eve = "frey-eve!user@host"
            for target in ("#general", "spark-ori"):
                odin.event(f"PRIVMSG {target} :a lie", eve, origin="frey", epoch="f4e70000")
            await odin.answered()
            thor.seq = odin.seq - 2
            for target in ("#general", "spark-ori"):
                thor.event(f"PRIVMSG {target} :hello", eve, origin="frey", epoch="f4e70000")
            await thor.answered()
            assert await heard(ori) == [("#general", "hello"), ("spark-ori", "hello")]

    @pytest.mark.fault("D13")
    async def test_nor_have_they_one_by_another_server_while_their_own_link_is_down(self, tmp_path: Path) -> None:
        links = (LinkConfig(name="thor", secret=SECRET), LinkConfig(name="odin", secret=SECRET, trust="no_authority"))
        async with (
            serving(tmp_path, links=links) as ircd,
            raw_peer(ircd) as thor,
            registered(ircd.port, "spark-ori", "message-tags") as ori,
        ):
            await thor.link()
            await ori.join("#general")
            thor.send("@peers=spark,odin :thor LINKSTATE thor 5 :x")
            thor.send("@peers=thor;epoch=fa4e :odin LINKSTATE odin 7 :x")
            thor.tell("ROSTER odin fa4e 5", "odin")
            thor.tell("ENDROSTER odin", "odin")
            thor.event("NICK odin-eve 1 user host odin + :Eve", "odin", "account=eve;kind=human", "odin", "fa4e")
            thor.event("JOIN #general + :Eve", "odin-eve!user@host", origin="odin", epoch="fa4e")
            said = ("PRIVMSG #general :go on", "odin-eve!user@host", "account=eve;kind=human", "odin", "fa4e")
            thor.event(*said)
            assert (await ori.expect("PRIVMSG")).tags.get("agentirc.dev/class", "unknown") == "unknown"
            user = ircd.parts.network.user("odin-eve")
            assert user is not None and user.kind == "unknown"


class TestRestricted:
    """Only named channels cross, in both directions, and nobody who is in none of them."""

    @pytest.mark.fault("D18")
    async def test_only_the_named_channels_cross(self, tmp_path: Path) -> None:
        async with linked(tmp_path, "restricted") as (ircd, peer), registered(ircd.port, "spark-ori") as ori:
            await peer.answered()
            await ori.join("#shared")
            await ori.join("#ours")
            for channel in ("#ours", "#shared"):
                await ori.ask(f"PRIVMSG {channel} :in {channel}")
                await ori.ask(f"TOPIC {channel} :about {channel}")
            lines = [str(line) for line in await peer.answered()]
            assert any("in #shared" in line for line in lines) and any("about #shared" in line for line in lines)
            assert not [line for line in lines if "#ours" in line]

    @pytest.mark.fault("D18")
    async def test_nor_do_the_others_of_the_peer(self, tmp_path: Path) -> None:
        async with linked(tmp_path, "restricted") as (ircd, peer), registered(ircd.port, "spark-ori") as ori:
            await ori.join("#shared")
            await ori.join("#ours")
            peer.arrive("thor-bob")
            for channel in ("#ours", "#shared"):
                peer.join("thor-bob", channel)
                peer.event(f"PRIVMSG {channel} :in {channel}", BOB)
            await peer.answered()
            assert await heard(ori) == [("#shared", "in #shared")]
            channel = ircd.parts.network.channel("#ours")
            assert channel is not None and len(channel.members) == 1

    async def test_who_is_in_none_of_them_is_not_told(self, tmp_path: Path) -> None:
        async with linked(tmp_path, "restricted") as (ircd, peer), registered(ircd.port, "spark-ori") as ori:
            await ori.join("#ours")
            await ori.ask("AWAY :tea")
            assert not [line for line in await peer.answered() if "spark-ori" in str(line)]
            await ori.join("#shared")
            assert (await peer.expect("NICK")).params[0] == "spark-ori"
            assert (await peer.expect("NJOIN", "#shared")).params[-1].lstrip("@") == "spark-ori"
            await peer.expect("ENDROSTER")
            await ori.ask("METADATA * SET agentirc.dev/state :busy")
            await ori.ask("PART #shared")
            lines = await peer.answered()
            assert not [line for line in lines if "METADATA" in str(line)]
            rosters = [line.verb for line in lines if line.verb in ("ROSTER", "NICK", "ENDROSTER")]
            assert rosters == ["ROSTER", "ENDROSTER"]

    async def test_nothing_else_tells_of_a_channel_that_does_not_cross(self, tmp_path: Path) -> None:
        async with (
            linked(tmp_path, "restricted") as (ircd, peer),
            registered(ircd.port, "spark-ori", "message-tags") as ori,
        ):
            peer.arrive("thor-bob")
            peer.join("thor-bob", "#shared")
            await peer.answered()
            await ori.join("#ours")
            await ori.ask("INVITE thor-bob #ours")
            await ori.ask("@+typing=active TAGMSG thor-bob")
            await ori.ask("METADATA #ours SET agentirc.dev/purpose :plans")
            assert not [line for line in await peer.answered() if "#ours" in str(line) or "spark-ori" in str(line)]
            peer.event("METADATA thor-bob agentirc.dev/state * :busy", BOB)
            peer.event("INVITE spark-ori #elsewhere", BOB)
            await peer.answered()
            user = ircd.parts.network.user("thor-bob")
            assert user is not None and not user.metadata
            assert not [line for line in await ori.sync() if line.verb == "INVITE"]

    async def test_private_messages_need_a_channel_in_common(self, tmp_path: Path) -> None:
        async with linked(tmp_path, "restricted") as (ircd, peer), registered(ircd.port, "spark-ori") as ori:
            peer.arrive("thor-bob")
            peer.join("thor-bob", "#shared")
            peer.event("PRIVMSG spark-ori :psst", BOB)
            await peer.answered()
            assert await heard(ori) == []
            notices = [m for m in await ori.ask("PRIVMSG thor-bob :psst") if m.verb == "NOTICE"]
            assert "share no channel" in notices[0].params[1]
            assert not [line for line in await peer.answered() if line.verb == "PRIVMSG"]
            await ori.join("#shared")
            await ori.ask("PRIVMSG thor-bob :hello")
            assert (await peer.expect("PRIVMSG")).params == ("thor-bob", "hello")
            peer.event("PRIVMSG spark-ori :hello", BOB)
            await ori.expect("PRIVMSG", "spark-ori", "hello")
