"""What users can set for themselves."""

import pytest

from tests.server.conftest import Crowd
from tests.server.rooms import codes, lines


@pytest.mark.requirement("B16")
async def test_users_set_and_see_their_own_modes(crowd: Crowd) -> None:
    """RFC 2812 §3.1.5"""
    ori = await crowd.join("spark-ori")
    await ori.ask("MODE spark-ori +i")
    assert lines(await ori.ask("MODE SPARK-ORI")) == [("221", "spark-ori", "+i")]
    (changed,) = await ori.ask("MODE spark-ori -i+wBRi-i")
    assert lines([changed]) == [("MODE", "spark-ori", "-i+wBR")]
    assert changed.source.startswith("spark-ori!")
    assert lines(await ori.ask("MODE spark-ori")) == [("221", "spark-ori", "+BRw")]
    assert await ori.ask("MODE spark-ori +wB") == []
    assert lines(await ori.ask("MODE spark-ori -wBR")) == [("MODE", "spark-ori", "-wBR")]
    assert lines(await ori.ask("MODE spark-ori")) == [("221", "spark-ori", "+")]


async def test_nobody_makes_themselves_operator(crowd: Crowd) -> None:
    """RFC 2812 §3.1.5: only OPER does"""
    ori = await crowd.join("spark-ori")
    assert await ori.ask("MODE spark-ori +o") == []
    assert lines(await ori.ask("MODE spark-ori +ow")) == [("MODE", "spark-ori", "+w")]
    assert "o" not in (await ori.ask("MODE spark-ori"))[0].params[1]


async def test_unknown_user_modes_are_told_once_and_the_rest_is_done(crowd: Crowd) -> None:
    """RFC 2812 §3.1.5: 501"""
    ori = await crowd.join("spark-ori")
    answer = await ori.ask("MODE spark-ori +xwyé:")
    assert codes(answer) == ["501", "MODE"]
    assert lines(answer)[1] == ("MODE", "spark-ori", "+w")


async def test_the_modes_of_others_are_not_for_us(crowd: Crowd) -> None:
    """RFC 2812 §3.1.5: 502, 401"""
    ori = await crowd.join("spark-ori")
    await crowd.join("spark-ada")
    assert codes(await ori.ask("MODE spark-ada")) == ["502"]
    assert codes(await ori.ask("MODE spark-ada -i")) == ["502"]
    assert codes(await ori.ask("MODE nobody +i")) == ["401"]


async def test_a_bot_says_so_with_a_tag(crowd: Crowd) -> None:
    """IRCv3 bot mode"""
    bot = await crowd.join("spark-bot", caps="message-tags echo-message")
    ada = await crowd.join("spark-ada", caps="message-tags")
    await bot.ask("MODE spark-bot +B")
    (echo,) = await bot.ask("PRIVMSG spark-ada :beep")
    (heard,) = await ada.sync()
    assert echo.tags["bot"] == heard.tags["bot"] == ""


async def test_with_r_only_those_with_an_account_get_through(crowd: Crowd) -> None:
    """+R"""
    ori, ada = await crowd.join("spark-ori"), await crowd.join("spark-ada")
    await ori.ask("MODE spark-ori +R")
    assert codes(await ada.ask("PRIVMSG spark-ori :hello")) == ["477"]
    assert await ori.sync() == []
    await ori.ask("MODE spark-ori -R")
    assert await ada.ask("PRIVMSG spark-ori :hello") == []
