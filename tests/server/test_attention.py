"""Mentions: the server says whom a message calls (decision 5)."""

import pytest

from culture.protocol.vocabulary import Cap, Tag
from tests.server.conftest import Crowd


def notices(messages: list) -> list[str]:
    return [each.params[1] for each in messages if each.verb == "NOTICE"]


@pytest.mark.requirement("C01", "C02", "C07")
async def test_a_plain_client_that_is_mentioned_gets_one_notice(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#general")
    agent = await crowd.join("spark-culture", "#general")
    other = await crowd.join("spark-other", "#general")
    await ori.ask("PRIVMSG #general :@spark-culture hello")
    heard = await agent.sync()
    assert [each.verb for each in heard if each.verb != "JOIN"] == ["PRIVMSG", "NOTICE"]
    [told] = notices(heard)
    assert all(word in told for word in ("spark-ori", "#general", "@spark-culture hello"))
    assert heard[-1].source == "spark"
    assert notices(await other.sync()) == []


@pytest.mark.requirement("C01")
async def test_a_client_that_asked_for_it_sees_a_tag_and_no_notice(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#general")
    agent = await crowd.join("spark-culture", "#general", caps=f"message-tags {Cap.MENTIONS}")
    watcher = await crowd.join("spark-watch", "#general", caps=f"message-tags {Cap.MENTIONS}")
    tags_only = await crowd.join("spark-tags", "#general", caps="message-tags")
    await ori.ask("PRIVMSG #general :(@spark-culture, @spark-tags) look")
    assert (await agent.expect("PRIVMSG")).tags[Tag.MENTIONS] == "spark-culture,spark-tags"
    assert (await watcher.expect("PRIVMSG")).tags[Tag.MENTIONS] == "spark-culture,spark-tags"
    assert notices(await agent.sync()) == notices(await watcher.sync()) == []
    assert Tag.MENTIONS not in (await tags_only.expect("PRIVMSG")).tags
    assert len(notices(await tags_only.sync())) == 1


@pytest.mark.requirement("C01")
@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("@spark-culture hi", True),
        ("@SPARK-CULTURE hi", True),
        ("hi (@spark-culture)", True),
        ("spark-culture: hi", True),
        ("@culture hi", True),
        ("@spark-culture-2 hi", False),
        ("mail me@spark-culture now", False),
        ("look at `@spark-culture`", False),
        ("about spark-culture", False),
    ],
)
async def test_what_counts_as_a_mention(crowd: Crowd, text: str, called: bool) -> None:
    """Decision 5"""
    ori = await crowd.join("spark-ori", "#general")
    agent = await crowd.join("spark-culture", "#general")
    await ori.ask(f"PRIVMSG #general :{text}")
    assert bool(notices(await agent.sync())) is called


async def test_all_calls_every_agent_of_the_channel_when_a_person_says_it(crowd: Crowd) -> None:
    """Decision 5"""
    ori = await crowd.join("spark-ori", "#general")
    agents = [await crowd.join(f"spark-agent{number}", "#general") for number in range(2)]
    outside = await crowd.join("spark-outside")
    for agent in (*agents, outside):
        await agent.ask(f"MODE {agent.nick} +B")
    person = await crowd.join("spark-ada", "#general")
    await ori.ask("PRIVMSG #general :@all benchmark this")
    assert [len(notices(await each.sync())) for each in (*agents, outside, person)] == [1, 1, 0, 0]
    await agents[0].ask("PRIVMSG #general :@all do my work")
    assert notices(await agents[1].sync()) == []


async def test_notices_and_private_messages_call_nobody(crowd: Crowd) -> None:
    """Decision 21: a NOTICE wakes nobody; a private message is for its reader anyway."""
    ori = await crowd.join("spark-ori", "#general")
    agent = await crowd.join("spark-culture", "#general")
    await ori.ask("NOTICE #general :@spark-culture done")
    await ori.ask("PRIVMSG spark-culture :@spark-culture hello")
    assert [each.verb for each in await agent.sync()] == ["NOTICE", "PRIVMSG"]


async def test_nobody_is_told_of_mentioning_themselves(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#general")
    assert await ori.ask("PRIVMSG #general :I, @spark-ori, declare") == []


async def test_a_long_mention_still_fits_into_a_line(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#general")
    agent = await crowd.join("spark-culture", "#general")
    await ori.ask("PRIVMSG #general :@spark-culture " + "é" * 200)
    agent.send("PING end")
    while b"PONG" not in (line := await agent.line()):
        assert len(line) <= 512


async def test_what_is_said_to_operators_calls_operators_only(crowd: Crowd) -> None:
    """A notice repeats the text, so who may not hear it gets none (STATUSMSG)."""
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    eve = await crowd.join("spark-eve", "#a")
    await ori.ask("MODE #a +o spark-ada")
    await ori.ask("PRIVMSG @#a :@spark-eve must go, @spark-ada")
    assert len(notices(await ada.sync())) == 1
    assert [each.verb for each in await eve.sync()] == ["MODE"]
