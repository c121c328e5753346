"""Saying something and hearing it, on a server of ours."""

import asyncio
from datetime import UTC, datetime

import pytest

from culture.protocol.vocabulary import UserClass
from culture.server.ircd import IRCd
from culture.transport import Message, NotSent
from tests.support.client import registered
from tests.transport.conftest import Come


@pytest.mark.requirement("F04", "F14", "N02")
async def test_somebody_registers_joins_and_hears(ircd: IRCd, come: Come) -> None:
    ada = await come(ircd.port, "spark-ada", ["#general"])
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        ori.send("PRIVMSG #general :@ada hello")
        heard = await ada.hears("@ada hello")
    assert (heard.channel, heard.sender, heard.nick) == ("#general", "spark-ori", "spark-ori")
    assert heard.mentions == ("spark-ada",)
    assert heard.kind is UserClass.HUMAN
    assert not heard.private and not heard.notice and not heard.missed and not heard.own
    assert heard.msgid.startswith("spark.")
    assert (datetime.now(UTC) - heard.timestamp).total_seconds() < 60


@pytest.mark.requirement("N02")
def test_a_message_needs_no_more_than_four_facts() -> None:
    now = datetime.now(UTC)
    message = Message("#general", "ori", "hello", now)
    assert (message.channel, message.sender, message.text, message.timestamp) == ("#general", "ori", "hello", now)


async def test_the_prefix_of_the_server_is_added_where_it_is_demanded(ircd: IRCd, come: Come) -> None:
    bridge = await come(ircd.port, "mcp-bridge", ["#general"])
    assert bridge.irc.nick == "spark-mcp-bridge"
    assert [member.nick for member in bridge.irc.members("#general")] == ["spark-mcp-bridge"]


@pytest.mark.requirement("F30")
async def test_what_is_said_has_its_id_and_comes_back_as_own(ircd: IRCd, come: Come) -> None:
    ada = await come(ircd.port, "spark-ada", ["#general"])
    (msgid,) = await ada.irc.send_privmsg("#general", "hello")
    echo = await ada.hears("hello")
    assert echo.own and echo.msgid == msgid


async def test_a_long_text_is_one_message(ircd: IRCd, come: Come) -> None:
    ada = await come(ircd.port, "spark-ada", ["#general"])
    bob = await come(ircd.port, "spark-bob", ["#general"])
    text = "what I tried:\n\n- " + "a clean build " * 60 + "\n- and again"
    (msgid,) = await ada.irc.send_privmsg("#general", text)
    heard = await bob.hears(text)
    assert heard.msgid == msgid


async def test_what_is_unknown_is_refused_with_the_nearest_name(ircd: IRCd, come: Come) -> None:
    ada = await come(ircd.port, "spark-ada", ["#general"])
    await come(ircd.port, "spark-bob", ["#general"])
    for target, meant in (("spark-bub", "spark-bob"), ("#generl", "#general")):
        with pytest.raises(NotSent, match=f"No such .*did you mean {meant}"):
            await ada.irc.send_privmsg(target, "hello")


async def test_nothing_is_left_after_stopping(ircd: IRCd, come: Come) -> None:
    before = asyncio.all_tasks()
    ada = await come(ircd.port, "spark-ada", ["#general"])
    await ada.irc.stop("enough")
    assert asyncio.all_tasks() <= before
    assert not ada.irc.connected
    with pytest.raises(NotSent, match="not connected"):
        await ada.irc.send_privmsg("#general", "hello")
