"""Speaking: who hears what."""

import pytest

from culture.protocol.message import Message
from tests.server.conftest import Crowd
from tests.support.client import registered
from tests.support.servers import Serve


def texts(messages: list) -> list[tuple[str, ...]]:
    return [(message.verb, *message.params) for message in messages]


def codes(messages: list) -> list[str]:
    return [message.verb for message in messages]


@pytest.mark.requirement("B10")
async def test_a_channel_hears_what_is_said_and_the_speaker_does_not(crowd: Crowd) -> None:
    """RFC 2812 §3.3.1"""
    ori = await crowd.join("spark-ori", "#general")
    ada = await crowd.join("spark-ada", "#general")
    outside = await crowd.join("spark-outside")
    await ori.sync()
    assert await ori.ask("PRIVMSG #GENERAL :hello there") == []
    heard = await ada.expect("PRIVMSG", "#general", "hello there")
    assert heard.source == "spark-ori!~tester@127.0.0.1"
    assert await outside.sync() == []


@pytest.mark.requirement("B10")
async def test_speaking_where_one_cannot_is_told(crowd: Crowd) -> None:
    """RFC 2812 §3.3.1: 401, 403, 404, 411, 412"""
    await crowd.join("spark-ada", "#a")
    ori = await crowd.join("spark-ori")
    for line, answer in (
        ("PRIVMSG spark-nobody :x", ("401", "spark-ori", "spark-nobody")),
        ("PRIVMSG #nowhere :x", ("403", "spark-ori", "#nowhere")),
        ("PRIVMSG #a :x", ("404", "spark-ori", "#a")),
        ("PRIVMSG", ("411", "spark-ori")),
        ("PRIVMSG #a", ("412", "spark-ori")),
        ("PRIVMSG #a :", ("412", "spark-ori")),
        ("PRIVMSG a,b,c,d,e :x", ("407", "spark-ori", "e")),
    ):
        [refusal] = texts(await ori.ask(line))
        assert refusal[: len(answer)] == answer


@pytest.mark.requirement("B11")
async def test_a_notice_is_heard_and_never_answered(crowd: Crowd) -> None:
    """RFC 2812 §3.3.2"""
    ada = await crowd.join("spark-ada", "#a")
    ori = await crowd.join("spark-ori", "#a")
    await ada.sync()
    assert await ori.ask("NOTICE #a :to all") == []
    assert await ori.ask("NOTICE spark-ada :to you") == []
    assert texts(await ada.sync()) == [("NOTICE", "#a", "to all"), ("NOTICE", "spark-ada", "to you")]
    for line in ("NOTICE #nowhere :x", "NOTICE spark-nobody :x", "NOTICE", "NOTICE #a", "NOTICE a,b,c,d,e,f :x"):
        assert await ori.ask(line) == []
    await ada.ask("AWAY :gone")
    assert await ori.ask("NOTICE spark-ada :still") == []


@pytest.mark.requirement("A18", "B10")
async def test_a_private_message_reaches_its_reader_and_nobody_else(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    other = await crowd.join("spark-other", "#a")
    await crowd.join("spark-late", "#a")
    for client in (ori, ada, other):
        await client.sync()
    assert await ori.ask("PRIVMSG Spark-ADA :just us") == []
    assert texts(await ada.sync()) == [("PRIVMSG", "spark-ada", "just us")]
    assert await other.sync() == []
    assert await ada.ask("PRIVMSG spark-ori :agreed") == []
    assert texts(await ori.sync()) == [("PRIVMSG", "spark-ori", "agreed")]


async def test_several_targets_each_get_it_once(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    assert codes(await ori.ask("PRIVMSG #a,spark-ada,spark-nobody,#a :hi"))[-1:] == ["401"]
    assert texts(await ada.sync()) == [("PRIVMSG", "#a", "hi"), ("PRIVMSG", "spark-ada", "hi")]


async def test_a_message_for_operators_reaches_them_and_those_above(crowd: Crowd) -> None:
    """STATUSMSG"""
    op = await crowd.join("spark-op", "#a")
    voiced = await crowd.join("spark-voiced", "#a")
    plain = await crowd.join("spark-plain", "#a")
    await op.ask("MODE #a +v spark-voiced")
    await voiced.sync()
    await plain.ask("PRIVMSG @#a :for operators")
    await plain.ask("PRIVMSG +#a :for the voiced")
    assert [each for each in texts(await op.sync()) if each[0] == "PRIVMSG"] == [
        ("PRIVMSG", "@#a", "for operators"),
        ("PRIVMSG", "+#a", "for the voiced"),
    ]
    assert texts(await voiced.sync()) == [("PRIVMSG", "+#a", "for the voiced")]
    assert codes(await plain.sync()).count("PRIVMSG") == 0


@pytest.mark.requirement("A04")
async def test_what_goes_over_the_wire_is_plain_text_that_a_person_can_type(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a")
    raw = await crowd.connect()
    raw.send_raw(b"NICK spark-nc\nUSER nc 0 * :netcat\nJOIN #a\n")
    while b" 366 " not in await raw.line():
        pass
    await ori.ask("PRIVMSG #a :any agent reads this without a library")
    assert await raw.line() == b":spark-ori!~tester@127.0.0.1 PRIVMSG #a :any agent reads this without a library\r\n"


@pytest.mark.requirement("A06")
@pytest.mark.parametrize("text", [":", ":x", " lead", "a  b ", "  ", "@a=b c", "PING", "\x01ACTION é\x01", "\x1fu\x1f"])
async def test_the_lines_made_by_hand_are_read_back_as_what_was_said(crowd: Crowd, text: str) -> None:
    """A06: for speed the server writes some lines itself; they mean what the module of the protocol would write."""
    ori = await crowd.join("spark-ori", "#a")
    plain = await crowd.join("spark-plain", "#a")
    tagged = await crowd.join("spark-tagged", "#a", caps="message-tags")
    await ori.ask(f"PRIVMSG #a :{text}")
    expected = Message("PRIVMSG", ("#a", text), "spark-ori!~tester@127.0.0.1")
    assert (await plain.expect("PRIVMSG")) == Message.parse(str(expected)) == expected
    await tagged.sync()
    [echo] = await tagged.ask(str(Message("TAGMSG", ("spark-tagged",), tags={"+t": f"; \\{text}"})))
    assert (echo.verb, echo.params, echo.tags["+t"]) == ("TAGMSG", ("spark-tagged",), f"; \\{text}")


@pytest.mark.requirement("A15")
async def test_the_same_name_on_two_servers_is_two_nicks(
    tmp_path_factory: pytest.TempPathFactory, serve: Serve
) -> None:
    """Decision 1: uniqueness is in the form, so nothing has to be resolved at run time."""
    async with (
        serve() as spark,
        serve(name="thor", data_dir=tmp_path_factory.mktemp("thor")) as thor,
        registered(spark.port, "spark-claude") as here,
        registered(thor.port, "thor-claude") as there,
    ):
        assert codes(await here.ask("NICK thor-claude")) == codes(await there.ask("NICK spark-claude")) == ["432"]


async def test_an_echo_comes_also_from_where_the_speaker_is_not_a_member(crowd: Crowd) -> None:
    op = await crowd.join("spark-op", "#a")
    await op.ask("MODE #a -n")
    ori = await crowd.join("spark-ori", caps="echo-message")
    assert texts(await ori.ask("PRIVMSG #a :from outside")) == [("PRIVMSG", "#a", "from outside")]
    await ori.join("#a")
    assert texts(await ori.ask("PRIVMSG @#a :for operators")) == [("PRIVMSG", "@#a", "for operators")]


@pytest.mark.fault("J5")
async def test_a_wrong_name_is_answered_with_the_nearest_right_one(crowd: Crowd) -> None:
    """J5"""
    await crowd.join("spark-culture", "#benchmarks")
    await crowd.join("spark-ada")
    ori = await crowd.join("spark-ori")
    for line, meant in (
        ("PRIVMSG spark-cultrue :hi", "spark-culture"),
        ("PRIVMSG #benchmark :hi", "#benchmarks"),
        ("WHOIS spark-cultur", "spark-culture"),
        ("PART #bencmarks", "#benchmarks"),
    ):
        refusal = (await ori.ask(line))[0]
        assert refusal.verb in ("401", "403")
        assert meant in refusal.params[-1]
    assert "did you mean" not in (await ori.ask("PRIVMSG spark-zzz :hi"))[0].params[-1]
