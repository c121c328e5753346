"""Rooms: coming in, being there, leaving."""

import pytest

from culture.server.events import Arrived, Joined
from tests.server.conftest import Crowd
from tests.support.client import registered
from tests.support.servers import Serve


def codes(messages: list) -> list[str]:
    return [message.verb for message in messages]


@pytest.mark.requirement("B06", "A17")
async def test_join_makes_a_channel_and_its_first_member_operator(crowd: Crowd) -> None:
    """RFC 2812 §3.2.1"""
    ori = await crowd.join("spark-ori")
    got = await ori.join("#llama-cpp")
    assert codes(got) == ["JOIN", "353", "366"]
    assert got[0].source.startswith("spark-ori!")
    assert got[1].params == ("spark-ori", "=", "#llama-cpp", "@spark-ori")
    assert got[2].params[:2] == ("spark-ori", "#llama-cpp")


@pytest.mark.requirement("B06")
async def test_those_inside_see_who_comes_and_newcomers_see_the_topic(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a")
    await ori.ask("TOPIC #a :what we do")
    ada = await crowd.join("spark-ada")
    assert codes(await ada.join("#A")) == ["JOIN", "332", "333", "353", "366"]
    assert [(each.verb, each.params, each.source.split("!")[0]) for each in await ori.sync()] == [
        ("JOIN", ("#a",), "spark-ada")
    ]
    assert await ada.join("#a") == []


@pytest.mark.requirement("A17")
async def test_a_channel_ends_with_its_last_member(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a")
    await ori.ask("TOPIC #a :soon forgotten")
    await ori.ask("PART #a")
    assert codes(await ori.join("#a")) == ["JOIN", "353", "366"]


@pytest.mark.requirement("A16")
async def test_general_is_always_there(crowd: Crowd) -> None:
    """A16: before anybody came, and after everybody left."""
    ori = await crowd.join("spark-ori")
    assert [each.params[1:3] for each in await ori.ask("LIST") if each.verb == "322"] == [("#general", "0")]
    await ori.join("#general")
    await ori.ask("TOPIC #general :kept")
    await ori.ask("PART #general")
    assert "332" in codes(await ori.join("#general"))


@pytest.mark.requirement("A34")
async def test_somebody_moves_between_channels_without_a_new_session(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori")
    for name in ("#a", "#b", "#c"):
        await ori.join(name)
        assert codes(await ori.ask(f"PART {name}")) == ["PART"]
    assert codes(await ori.ask("JOIN #a,#b")) == ["JOIN", "353", "366"] * 2
    assert codes(await ori.ask("JOIN 0")) == ["PART", "PART"]


@pytest.mark.requirement("B07")
async def test_part_is_seen_with_its_reason(crowd: Crowd) -> None:
    """RFC 2812 §3.2.2"""
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    await ori.sync()
    assert codes(await ori.ask("PART #a :to think")) == ["PART"]
    assert (await ada.expect("PART", "#a", "to think")).source.startswith("spark-ori!")
    assert codes(await ori.ask("PART #a")) == ["442"]
    assert codes(await ori.ask("PART #nowhere")) == ["403"]


@pytest.mark.requirement("B08")
async def test_the_topic_is_told_set_seen_and_cleared(crowd: Crowd) -> None:
    """RFC 2812 §3.2.4"""
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    await ori.sync()
    assert codes(await ada.ask("TOPIC #a")) == ["331"]
    assert codes(await ada.ask("TOPIC #a :mine")) == ["482"]
    assert codes(await ori.ask("TOPIC #a :ours")) == ["TOPIC"]
    assert (await ada.expect("TOPIC", "#a")).params[1] == "ours"
    told = await ada.ask("TOPIC #a")
    assert next(each.params[1:3] for each in told) == ("#a", "ours")
    assert told[1].params[2].startswith("spark-ori!")
    assert codes(await ori.ask("TOPIC #a :")) == ["TOPIC"]
    assert codes(await ori.ask("TOPIC #a")) == ["331"]
    outsider = await crowd.join("spark-out")
    assert codes(await outsider.ask("TOPIC #a :x")) == ["442"]
    assert codes(await outsider.ask("TOPIC #none")) == ["403"]


@pytest.mark.requirement("B09")
async def test_names_shows_everybody_with_their_rank(crowd: Crowd) -> None:
    """RFC 2812 §3.2.5"""
    ori = await crowd.join("spark-ori", "#a")
    await crowd.join("spark-ada", "#a")
    await crowd.join("spark-bob", "#a")
    await ori.ask("MODE #a +v spark-ada")
    names, end = await ori.ask("NAMES #a")
    assert (names.verb, names.params) == ("353", ("spark-ori", "=", "#a", "@spark-ori +spark-ada spark-bob"))
    assert (end.verb, end.params[:2]) == ("366", ("spark-ori", "#a"))


async def test_names_of_a_large_channel_takes_several_lines_that_fit(serve: Serve) -> None:
    async with serve() as ircd, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#a")
        nicks = {f"spark-a-rather-long-name-{number:02}" for number in range(40)}
        network = ircd.parts.network
        for nick in nicks:
            stamp = ircd.parts.router.ids.stamp
            ircd.parts.router.publish(Arrived(stamp(), nick, "~u", "host", "R", "spark"))
            ircd.parts.router.publish(Joined(stamp(), network.users[nick].source, "#a"))
        ori.send("NAMES #a")
        listed: list[str] = []
        while b" 366 " not in (line := await ori.line()):
            assert len(line) <= 512
            if b" 353 " in line:
                listed += line.decode().rstrip().split(" :", 1)[1].split(" ")
        assert set(listed) == nicks | {"@spark-ori"}


@pytest.mark.requirement("B16")
async def test_kick_removes_and_everybody_sees_it(crowd: Crowd) -> None:
    """RFC 2812 §3.2.8"""
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    bob = await crowd.join("spark-bob", "#a")
    assert codes(await ada.ask("KICK #a spark-bob"))[-1:] == ["482"]
    await ori.sync()
    assert codes(await ori.ask("KICK #a spark-bob :enough")) == ["KICK"]
    for seer in (ada, bob):
        assert (await seer.expect("KICK", "#a", "spark-bob", "enough")).source.startswith("spark-ori!")
    assert codes(await bob.ask("PRIVMSG #a :hey")) == ["404"]
    assert codes(await ori.ask("KICK #a spark-bob")) == ["441"]
    assert codes(await bob.ask("KICK #a spark-ori")) == ["442"]


@pytest.mark.requirement("B16")
async def test_an_invitation_opens_an_invite_only_channel_once(crowd: Crowd) -> None:
    """RFC 2812 §3.2.7"""
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada")
    await ori.ask("MODE #a +i")
    assert codes(await ada.join("#a")) == ["473"]
    assert codes(await ori.ask("INVITE spark-ada #a")) == ["341"]
    assert (await ada.expect("INVITE", "spark-ada", "#a")).source.startswith("spark-ori!")
    assert next(each.params[1] for each in await ada.ask("INVITE")) == "#a"
    assert codes(await ada.join("#a"))[0] == "JOIN"
    await ada.ask("PART #a")
    assert codes(await ada.join("#a")) == ["473"]


async def test_nobody_is_in_more_channels_than_the_limit(serve: Serve) -> None:
    async with serve(limits={"channels_per_client": 2}) as ircd, registered(ircd.port, "spark-ori") as ori:
        assert codes(await ori.ask("JOIN #a,#b,#c"))[-1] == "405"


async def test_channel_names_that_cannot_be_are_refused(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori")
    for name in ("general", "&local", "#", "#" + "x" * 64, "#a\x07b"):
        [refusal] = await ori.join(name)
        assert (refusal.verb, refusal.params[1]) == ("403", name)
        assert refusal.params[-1].startswith("A channel name begins with # and has at most 64 bytes")
        assert (": try #" in refusal.params[-1]) == (name == "general")


async def test_a_kicks_reason_is_cut_between_characters(serve: Serve) -> None:
    async with serve(limits={"kick_length": 9}) as ircd, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#a")
        [kick] = await ori.ask("KICK #a spark-ori :grüße, alle")
        assert kick.params[-1] == "grüße, "


@pytest.mark.parametrize("locked", ["+i", "+k key", "+b *!*@*"])
async def test_an_empty_standing_channel_keeps_nobody_out(crowd: Crowd, locked: str) -> None:
    """Nobody is left who could let anybody in; who comes first is operator and may undo what kept others out."""
    ori = await crowd.join("spark-ori", "#general")
    await ori.ask(f"MODE #general {locked}")
    ada = await crowd.join("spark-ada")
    assert "JOIN" not in [each.verb for each in await ada.join("#general")]
    await ori.ask("PART #general")
    assert "JOIN" in [each.verb for each in await ada.join("#general")]
    assert [each.verb for each in await ada.ask(f"MODE #general -{locked[1:]}")] == ["MODE"]


async def test_an_agent_that_comes_first_is_no_operator_over_the_people_of_a_standing_channel(crowd: Crowd) -> None:
    """In a room of its own it is, as anybody; a second person is nobody special."""
    bot = await crowd.join("spark-bot")
    await bot.ask("MODE spark-bot +B")
    ranks = [(await bot.join(name))[1].params[-1] for name in ("#general", "#own")]
    assert ranks == ["spark-bot", "@spark-bot"]
    ori = await crowd.join("spark-ori")
    assert [each.verb for each in await ori.join("#general")] == ["JOIN", "353", "366"]
    assert (await bot.expect("MODE", "#general")).params == ("#general", "+o", "spark-ori")
    ada = await crowd.join("spark-ada", "#general")
    [names, _] = await ada.ask("NAMES #general")
    assert set(names.params[-1].split()) == {"spark-bot", "@spark-ori", "spark-ada"}
    assert [each.verb for each in await ori.ask("MODE #general +o spark-bot")] == ["JOIN", "MODE"]
