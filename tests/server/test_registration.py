"""Coming in, changing names, going."""

import socket
import struct

import pytest

from culture.protocol.numerics import Numeric
from tests.server.conftest import Crowd
from tests.support.client import connected, registered
from tests.support.servers import Serve


def codes(messages: list) -> list[str]:
    return [message.verb for message in messages]


@pytest.mark.requirement("B01")
async def test_a_client_that_gave_nick_and_user_is_welcomed(crowd: Crowd) -> None:
    """RFC 2812 §5.1"""
    ori = await crowd.connect()
    ori.send("NICK spark-ori")
    ori.send("USER ori 0 * :Ori")
    welcome = await ori.expect("001", "spark-ori")
    assert "spark-ori!~ori@127.0.0.1" in welcome.params[1]
    assert codes([await ori.receive() for _ in range(4)]) == ["002", "003", "004", "005"]
    assert codes(await ori.sync())[-1] == Numeric.RPL_ENDOFMOTD.code


@pytest.mark.requirement("B03")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("NICK", "431"),
        ("NICK :", "431"),
        ("NICK spark-", "432"),
        ("NICK spark-ta.ken", "432"),
        ("NICK spark-Taken", "433"),
        ("USER only 0 *", "461"),
        ("USER only 0 * :", "461"),
    ],
)
async def test_a_bad_registration_is_told_why(crowd: Crowd, line: str, code: str) -> None:
    """RFC 2812 §3.1"""
    await crowd.join("spark-taken")
    ori = await crowd.connect()
    ori.send(line)
    assert (await ori.receive()).verb == code


@pytest.mark.requirement("B03")
async def test_registering_twice_is_refused(crowd: Crowd) -> None:
    """RFC 2812 §3.1.3"""
    ori = await crowd.join("spark-ori")
    assert codes(await ori.ask("USER again 0 * :Again")) == ["462"]
    assert codes(await ori.ask("PASS late")) == ["462"]


@pytest.mark.requirement("A10", "A14")
@pytest.mark.parametrize("nick", ["ori", "thor-ori", "sparkori", "spark_ori", "-ori", "spark--ori"])
async def test_only_nicks_with_the_servers_prefix_are_local(crowd: Crowd, nick: str) -> None:
    """Decision 1"""
    ori = await crowd.connect()
    ori.send(f"NICK {nick}")
    refusal = await ori.receive()
    assert (refusal.verb, refusal.params[1]) == ("432", nick)
    assert "spark-" in refusal.params[-1]


@pytest.mark.parametrize(
    ("nick", "hint"),
    [
        ("ori", "Nicks here look like spark-name, at most 32 characters: try spark-ori"),
        ("spark-", "Nicks here look like spark-name, at most 32 characters"),
        ("Spark-o.ri", "Nicks here look like spark-name, at most 32 characters"),
        ("spark-all", "Reserved: people would mistake it for something else"),
        ("all", "Nicks here look like spark-name, at most 32 characters"),
    ],
)
async def test_a_refused_nick_is_told_what_would_do(crowd: Crowd, nick: str, hint: str) -> None:
    ori = await crowd.connect()
    ori.send(f"NICK {nick}")
    assert (await ori.receive()).params[-1] == hint


@pytest.mark.requirement("A11")
async def test_a_persons_nick_has_the_same_form_and_any_case(crowd: Crowd) -> None:
    ori = await crowd.join("SPARK-Ori")
    other = await crowd.connect()
    other.send("NICK spark-ori")
    assert (await other.receive()).verb == "433"
    assert (await ori.ask("WHOIS spark-ori"))[0].params[1] == "SPARK-Ori"


async def test_without_the_prefix_rule_any_valid_nick_will_do(serve: Serve) -> None:
    """Decision 1: ``nick_prefix: off``"""
    async with serve(nick_prefix="off") as ircd, registered(ircd.port, "ori") as ori:
        assert codes(await ori.ask("NICK server")) == ["NICK"]


@pytest.mark.fault("A15")
@pytest.mark.parametrize(
    "nick", ["spark-оri", "spаrk-ori", "spark-ori\u200b", "spark-server", "spark-HUMAN", "*", "spark-*", "spark-all"]
)
async def test_names_that_would_deceive_are_refused(crowd: Crowd, nick: str) -> None:
    """A15: homoglyphs and reserved names."""
    ori = await crowd.connect()
    ori.send(f"NICK {nick}")
    assert (await ori.receive()).verb == "432"


@pytest.mark.fault("A15")
async def test_names_differ_only_by_more_than_case(crowd: Crowd) -> None:
    """A15: case folding."""
    await crowd.join("spark-ada")
    ori = await crowd.join("spark-ori")
    assert codes(await ori.ask("NICK Spark-ADA")) == ["433"]


@pytest.mark.requirement("B02")
async def test_a_nick_change_is_seen_once_by_everybody_who_shares_a_channel(crowd: Crowd) -> None:
    """RFC 2812 §3.1.2"""
    ori = await crowd.join("spark-ori", "#a", "#b")
    ada = await crowd.join("spark-ada", "#a", "#b")
    stranger = await crowd.join("spark-stranger")
    await ori.sync()
    ori.send("NICK spark-Ori2")
    changed = await ori.expect("NICK", "spark-Ori2")
    assert changed.source.startswith("spark-ori!")
    assert [(each.verb, each.params) for each in await ada.sync()] == [("NICK", ("spark-Ori2",))]
    assert await stranger.sync() == []
    assert await ori.ask("NICK spark-Ori2") == []


@pytest.mark.requirement("B04")
async def test_a_quit_is_seen_with_its_reason_by_common_channels(crowd: Crowd) -> None:
    """RFC 2812 §3.1.7"""
    ori = await crowd.join("spark-ori", "#a", "#b")
    ada = await crowd.join("spark-ada", "#a", "#b")
    stranger = await crowd.join("spark-stranger", "#c")
    ori.send("QUIT :gone fishing")
    assert codes(await ori.ended())[-1] == "ERROR"
    seen = await ada.expect("QUIT")
    assert seen.source.startswith("spark-ori!")
    assert "gone fishing" in seen.params[0]
    assert await ada.sync() == []
    assert await stranger.sync() == []


@pytest.mark.requirement("B05")
@pytest.mark.parametrize("is_reset", [False, True], ids=["closed", "reset"])
async def test_a_dropped_connection_is_seen_as_a_quit(crowd: Crowd, is_reset: bool) -> None:
    """B05: whether it ends in good order or, as when a process dies with input unread, by a reset."""
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    if is_reset:
        ori.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    ori.close()
    assert (await ada.expect("QUIT")).source.startswith("spark-ori!")
    assert [each.params[-1] for each in await ada.ask("NAMES #a") if each.verb == "353"] == ["spark-ada"]


@pytest.mark.requirement("B12")
async def test_ping_is_answered_with_its_token(crowd: Crowd) -> None:
    """RFC 2812 §3.7.2"""
    ori = await crowd.join("spark-ori")
    ori.send("PING :a token")
    assert (await ori.receive()).params == ("spark", "a token")


@pytest.mark.requirement("B14")
async def test_an_unknown_command_is_told(crowd: Crowd) -> None:
    """RFC 2812 §5.2"""
    ori = await crowd.join("spark-ori")
    [answer] = await ori.ask("frobnicate now")
    assert (answer.verb, answer.params[:2]) == ("421", ("spark-ori", "FROBNICATE"))


async def test_nothing_but_registration_works_before_it(crowd: Crowd) -> None:
    ori = await crowd.connect()
    ori.send("JOIN #general")
    answer = await ori.receive()
    assert (answer.verb, answer.params[0]) == ("451", "*")
    ori.send("PING there?")
    assert (await ori.receive()).params == ("spark", "there?")


async def test_the_time_is_told_before_registration(crowd: Crowd) -> None:
    ori = await crowd.connect()
    ori.send("TIME")
    answer = await ori.receive()
    assert (answer.verb, answer.params[:2]) == ("391", ("*", "spark"))


async def test_before_registration_the_time_does_not_tell_who_is_here(crowd: Crowd) -> None:
    await crowd.join("spark-ori")
    stranger = await crowd.connect()
    for target in ("spark-ori", "spark-nobody", "spark"):
        stranger.send(f"TIME {target}")
        assert (await stranger.receive()).verb == "451"


async def test_the_password_of_the_server_is_needed_where_one_is_set(serve: Serve) -> None:
    async with serve(password="open sesame") as ircd:
        async with connected(ircd.port) as right:
            right.send("PASS :open sesame")
            await right.register("spark-right")
        for given in ("PASS :open sesam", "PASS :", "PING x"):
            async with connected(ircd.port) as wrong:
                wrong.send(given)
                wrong.send("NICK spark-wrong")
                wrong.send("USER wrong 0 * :Wrong")
                assert "464" in codes(got := await wrong.ended())
                assert "001" not in codes(got)


async def test_two_who_want_one_nick_at_once_do_not_both_get_it(crowd: Crowd) -> None:
    first, second = await crowd.connect(), await crowd.connect()
    first.send("NICK spark-ori")
    second.send("NICK spark-ori")
    first.send("USER a 0 * :A")
    await first.expect("001")
    second.send("USER b 0 * :B")
    assert (await second.receive()).verb == "433"
    second.send("NICK spark-ada")
    await second.expect("001", "spark-ada")


async def test_nobody_goes_by_the_name_of_the_server(serve: Serve) -> None:
    """A15: also where nicks have no prefix, what the server says is not mistaken for somebody's words."""
    async with serve(nick_prefix="off") as ircd, connected(ircd.port) as eve:
        eve.send("NICK Spark")
        assert (await eve.receive()).verb == "432"
