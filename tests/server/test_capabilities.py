"""IRCv3: what a client asked for, and nothing else."""

import re

import pytest

from culture.protocol.vocabulary import ClientTag, Tag
from tests.server.conftest import Crowd

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def codes(messages: list) -> list[str]:
    return [message.verb for message in messages]


async def test_registration_waits_for_cap_end(crowd: Crowd) -> None:
    ori = await crowd.connect()
    for line in ("CAP LS 302", "NICK spark-ori", "USER o 0 * :O"):
        ori.send(line)
    words: set[str] = set()
    while (offered := await ori.expect("CAP", "*", "LS")).params[2] == "*":
        words |= set(offered.params[-1].split())
    words |= set(offered.params[-1].split())
    assert {"message-tags", "server-time", "batch", "labeled-response"} <= words
    ori.send("CAP REQ :server-time nonsense")
    assert (await ori.receive()).params[1:] == ("NAK", "server-time nonsense")
    ori.send("CAP END")
    assert (await ori.receive()).verb == "001"


@pytest.mark.requirement("A19")
async def test_a_client_that_asked_for_nothing_gets_plain_lines(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a", caps="message-tags echo-message server-time")
    plain = await crowd.join("spark-plain", "#a")
    await ori.ask("@+t=1 PRIVMSG #a :hello")
    await ori.ask("@+t=1 TAGMSG #a")
    heard = await plain.sync()
    assert [(each.verb, dict(each.tags)) for each in heard] == [("PRIVMSG", {})]


async def test_every_message_has_one_id_and_time_for_all_who_see_it(crowd: Crowd) -> None:
    """Decision 4"""
    ori = await crowd.join("spark-ori", "#a", caps="message-tags echo-message server-time")
    ada = await crowd.join("spark-ada", "#a", caps="message-tags server-time")
    ori.send("PRIVMSG #a :hello")
    echo, heard = await ori.expect("PRIVMSG"), await ada.expect("PRIVMSG")
    assert echo.tags == heard.tags
    assert re.fullmatch(r"spark\.[0-9a-f]+\.\d+", echo.tags["msgid"])
    assert TIME.fullmatch(echo.tags["time"])


async def test_tags_of_a_client_pass_only_with_a_plus(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a", caps="message-tags")
    ada = await crowd.join("spark-ada", "#a", caps="message-tags")
    ours = f"+{Tag.CLASS}=human;+{Tag.MENTIONS}=x;{ClientTag.HOPS}=2"
    await ori.ask(f"@+mine=1;msgid=forged;time=forged;{Tag.CLASS}=human;{Tag.MENTIONS}=x;{ours} PRIVMSG #a :hi")
    heard = await ada.expect("PRIVMSG")
    assert heard.tags["+mine"] == "1"
    assert heard.tags[ClientTag.HOPS] == "2"
    assert not {f"+{Tag.CLASS}", f"+{Tag.MENTIONS}"} & heard.tags.keys()
    assert heard.tags["msgid"] != "forged"
    assert "time" not in heard.tags
    assert Tag.MENTIONS not in heard.tags


async def test_capabilities_may_change_while_in_a_channel(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    await ori.ask("PRIVMSG #a :one")
    ada.send("CAP REQ :server-time")
    await ada.expect("CAP", None, "ACK")
    await ori.ask("PRIVMSG #a :two")
    ada.send("CAP REQ :-server-time")
    await ada.expect("CAP", None, "ACK")
    await ori.ask("PRIVMSG #a :three")
    await ada.sync()
    assert [("time" in each.tags) for each in ada.seen if each.verb == "PRIVMSG"] == [False, True, False]


async def test_a_labelled_command_is_answered_under_its_label(crowd: Crowd) -> None:
    """IRCv3 labeled-response: one line, several in a batch, or an ACK."""
    ori = await crowd.join("spark-ori", caps="batch labeled-response echo-message")
    [one] = await ori.ask("@label=a FROB")
    assert (one.verb, one.tags) == ("421", {"label": "a"})
    opened, *inner, closed = await ori.ask("@label=b JOIN #a")
    assert opened.tags["label"] == "b"
    assert (opened.verb, opened.params[1], closed.verb) == ("BATCH", "labeled-response", "BATCH")
    assert codes(inner) == ["JOIN", "353", "366"]
    assert {each.tags["batch"] for each in inner} == {opened.params[0][1:]} == {closed.params[0][1:]}
    [nothing] = await ori.ask("@label=c PONG x")
    assert (nothing.verb, nothing.tags) == ("ACK", {"label": "c"})
    [echo] = await ori.ask("@label=d PRIVMSG #a :hi")
    assert (echo.verb, echo.tags["label"]) == ("PRIVMSG", "d")


async def test_a_message_to_oneself_arrives_beside_its_echo(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", caps="batch labeled-response echo-message")
    got = await ori.ask("@label=a PRIVMSG spark-ori :note")
    assert codes(got) == ["PRIVMSG", "PRIVMSG"]
    assert sorted(each.tags.get("label", "") for each in got) == ["", "a"]


async def test_others_never_see_a_label(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a", caps="batch labeled-response message-tags")
    ada = await crowd.join("spark-ada", "#a", caps="batch labeled-response message-tags")
    await ori.ask("@label=secret PRIVMSG #a :hi")
    assert "label" not in (await ada.expect("PRIVMSG")).tags


async def test_a_bot_is_known_by_its_tag_and_class(crowd: Crowd) -> None:
    """Decision 2: the class is the server's word."""
    bot = await crowd.join("spark-bot", "#a")
    ada = await crowd.join("spark-ada", "#a", caps="message-tags")
    await bot.ask("PRIVMSG #a :before")
    assert (await ada.expect("PRIVMSG")).tags[Tag.CLASS] == "human"
    await bot.ask("MODE spark-bot +B")
    await bot.ask("PRIVMSG #a :after")
    heard = await ada.expect("PRIVMSG")
    assert (heard.tags[Tag.CLASS], heard.tags["bot"]) == ("bot", "")
