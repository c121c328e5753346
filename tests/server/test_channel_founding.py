"""Founding a channel: which names it may have, and who operates those of the configuration."""

import logging
from pathlib import Path

import pytest

from culture.server.channels.registered_channels import dump, dump_channel
from culture.server.core.state import Channel
from culture.server.ircd import IRCd
from tests.federation.test_trust import linked
from tests.server.conftest import Crowd
from tests.server.rooms import codes, lines
from tests.server.test_registered_channels import house
from tests.support.client import Client, connected, registered
from tests.support.people import PASSWORD, accounts_of
from tests.support.servers import Serve, serving

HIDDEN, COPY, APART = "#gen\u200beral", "#gеneral", "#cafe\u0301"


async def person(client: Client, caps: str = "") -> None:
    client.send(f"PASS :ori:{PASSWORD}")
    await client.register("spark-ori", caps)


class TestNames:
    """Names of channels that people can read and tell apart."""

    async def test_unreadable_name_is_refused_with_the_reason(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori")
        for name, why in ((HIDDEN, "U+200B ZERO WIDTH SPACE"), (APART, "normal form C"), ("#a\u00a0b", "U+00A0")):
            [refused] = await ori.join(name)
            assert refused.verb == "403" and refused.params[1] == name and why in refused.params[-1]

    async def test_confusable_name_is_refused_to_the_second_founder(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori", "#Ops", "#чат")
        for name, other in ((COPY, "#general"), ("#0ps", "#Ops"), ("#ЧАТ", "#чат"), ("#genera1", "#general")):
            [refused] = await ori.join(name)
            assert refused.verb == "403" and f"looks like {other}: join that one" in refused.params[-1]
        await ori.ask("PART #Ops")
        assert codes(await ori.join("#0ps")) == ["JOIN", "353", "366"]

    async def test_existing_channel_is_joined_in_any_case(self, crowd: Crowd) -> None:
        await crowd.join("spark-ori", "#AI")
        ada = await crowd.join("spark-ada")
        assert (await ada.join("#ai"))[0].params == ("#AI",)
        assert codes(await ada.join("#al")) == ["403"]

    async def test_refusal_does_not_name_a_secret_channel(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori", "#plans")
        await ori.ask("MODE #plans +s")
        ada = await crowd.join("spark-ada")
        [refused] = await ada.join("#p1ans")
        assert "#plans" not in refused.params[-1] and "that of another channel" in refused.params[-1]

    async def test_channel_is_not_renamed_to_such_a_name(self, crowd: Crowd) -> None:
        ori = await crowd.join("spark-ori", "#old")
        for new, why in ((HIDDEN, "U+200B"), (COPY, "looks like #general")):
            [failed] = await ori.ask(f"RENAME #old {new}")
            assert failed.params[:3] == ("RENAME", "CANNOT_RENAME", "#old") and why in failed.params[-1]
        assert lines(await ori.ask("RENAME #old #O1d"))[0][:2] == ("PART", "#old")
        assert codes(await ori.join("#oId")) == ["403"]
        assert codes(await ori.join("#old")) == ["403"]  # it is #O1d now

    async def test_registered_channel_of_an_older_version_is_loaded_and_logged(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "data").mkdir()
        kept = [Channel(name, 1.0, flags={"P"}, founder="ori") for name in (HIDDEN, COPY)]
        (tmp_path / "data" / "channels.json").write_bytes(dump(map(dump_channel, kept)))
        with caplog.at_level(logging.WARNING):
            async with house(tmp_path) as home:
                ori = await home.enter("ori")
                assert [codes(await ori.join(name))[0] for name in (HIDDEN, COPY)] == ["JOIN", "JOIN"]
        assert "has a name that no new one may have" in caplog.text

    async def test_channel_that_a_peer_founded_is_there_and_who_joins_is_warned(self, tmp_path: Path) -> None:
        async with linked(tmp_path) as (ircd, peer), registered(ircd.port, "spark-ori", "standard-replies") as ori:
            await ori.join("#general")
            peer.arrive("thor-bob")
            for name in (COPY, HIDDEN):
                peer.join("thor-bob", name)
            await peer.answered()
            assert {COPY, HIDDEN} <= set(ircd.parts.network.channels)
            [warning] = [each for each in await ori.join(COPY) if each.verb == "WARN"]
            assert warning.params[:4] == ("JOIN", "CONFUSABLE_NAME", COPY, "#general")
            assert codes(await ori.join(HIDDEN))[0] == "JOIN"

    async def test_peer_without_a_say_founds_no_unreadable_channel(self, tmp_path: Path) -> None:
        async with linked(tmp_path, "no_authority") as (ircd, peer):
            peer.arrive("thor-bob")
            for name in (HIDDEN, COPY):
                peer.join("thor-bob", name)
            peer.event(f"PRIVMSG {HIDDEN} :is anybody here?", "thor-bob!user@host")
            await peer.answered()
            assert COPY in ircd.parts.network.channels and HIDDEN not in ircd.parts.network.channels


class TestNicks:
    """Names that read as a part of the system."""

    @pytest.mark.parametrize("name", ["supervisor", "system", "server", "irc"])
    async def test_reserved_nick_is_refused(self, crowd: Crowd, name: str) -> None:
        client = await crowd.join("spark-ori")
        [refused] = await client.ask(f"NICK spark-{name}")
        assert refused.verb == "432" and "Reserved" in refused.params[-1]
        assert codes(await client.ask("NICK spark-culture")) == ["NICK"]


class TestStandingChannels:
    """Channels of the configuration belong to people where people have accounts."""

    async def test_first_person_is_operator_and_nobody_else(self, tmp_path: Path) -> None:
        accounts_of(tmp_path, "ori", "ada")
        async with serving(tmp_path) as ircd, registered(ircd.port, "spark-nobody") as nobody:
            assert (await nobody.join("#general"))[1].params[-1] == "spark-nobody"
            assert (await nobody.join("#own"))[1].params[-1] == "@spark-nobody"
            async with connected(ircd.port) as ori:
                await person(ori)
                assert "@spark-ori" in (await ori.join("#general"))[1].params[-1].split()
                [refused] = await ori.ask("MODE #general +o spark-nobody")
                assert refused.verb == "482" and "Only people who are logged in" in refused.params[-1]
                assert codes(await ori.ask("MODE #general +v spark-nobody")) == ["MODE"]

    async def test_agent_that_founded_the_registered_room_has_no_rank_in_it(self, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir()
        accounts_of(tmp_path, "ori")
        kept = [Channel(name, 1.0, flags={"P"}, founder="a-bot") for name in ("#general", "#own")]
        (tmp_path / "data" / "channels.json").write_bytes(dump(map(dump_channel, kept)))
        async with house(tmp_path) as home:
            bot = await home.enter("a-bot")
            assert [(await bot.join(name))[1].params[-1] for name in ("#general", "#own")] == [
                "spark-a-bot",
                "@spark-a-bot",
            ]

    async def test_operator_of_before_the_first_account_is_one_no_more(self, serve: Serve, tmp_path: Path) -> None:
        async with (
            serve() as ircd,
            registered(ircd.port, "spark-ori") as ori,
            registered(ircd.port, "spark-ada") as ada,
        ):
            await ori.join("#general")
            await ada.join("#general")
            await ori.join("#own")
            await ori.ask("MODE #general +o spark-ada")
            await ada.sync()
            accounts_of(tmp_path, "dan")
            change = await ada.expect("MODE", "#general")
            assert change.params[1:] == ("-oo", "spark-ori", "spark-ada") and change.source == "spark"
            assert ircd.parts.network.channels["#own"].is_operator(ircd.parts.network.users["spark-ori"])

    async def test_rank_that_a_link_brings_is_taken_on_both_sides(self, tmp_path: Path) -> None:
        accounts_of(tmp_path, "ori")
        async with linked(tmp_path) as (ircd, peer), connected(ircd.port) as ori:
            await person(ori)
            peer.arrive("thor-bot", "account=bot;kind=agent")
            peer.join("thor-bot", "#general", "+o")
            peer.join("thor-bot", "#own", "+o")
            assert (await peer.expect("MODE", "#general")).params[1] == '[[false,"o","thor-bot"]]'
            assert operators(ircd, "#general") == [] and operators(ircd, "#own") == ["thor-bot"]
            await ori.join("#general")
            peer.event('MODE #general :[[true,"o","thor-bot"]]', "thor-bot!user@host", "v=9")
            await peer.expect("MODE", "#general", '[[false,"o","thor-bot"]]')
            assert operators(ircd, "#general") == ["spark-ori"]


def operators(ircd: IRCd, channel: str) -> list[str]:
    return [user.nick for user, rank in ircd.parts.network.channels[channel].members.items() if "o" in rank]
