"""AWAY: who writes to somebody away is told so."""

import pytest

from culture.protocol.stream import LINE_LIMIT
from culture.server.auth.authenticator import Credentials, ServerIdentity
from tests.server.conftest import Crowd
from tests.server.rooms import codes, lines
from tests.support.client import registered
from tests.support.servers import Serve


@pytest.mark.requirement("B16")
async def test_going_away_and_coming_back(crowd: Crowd) -> None:
    """RFC 2812 §4.1: 306, 305; 301 for a message, none for a notice or in a channel"""
    ori, ada = await crowd.join("spark-ori", "#room"), await crowd.join("spark-ada", "#room")
    await ori.sync()
    assert await ada.ask("PRIVMSG spark-ori :are you there?") == []
    await ori.sync()
    assert codes(await ori.ask("AWAY :back at noon")) == ["306"]
    assert await ada.sync() == []
    assert lines(await ada.ask("PRIVMSG spark-ori :hello")) == [("301", "spark-ada", "spark-ori", "back at noon")]
    assert lines(await ori.sync()) == [("PRIVMSG", "spark-ori", "hello")]
    assert await ada.ask("NOTICE spark-ori :hello") == []
    assert await ada.ask("PRIVMSG #room :hello") == []
    assert codes(await ori.ask("AWAY :back at one"))[-1] == "306"
    assert lines(await ada.ask("PRIVMSG spark-ori :hello"))[0][3] == "back at one"
    await ori.sync()
    assert codes(await ori.ask("AWAY")) == ["305"]
    assert await ada.ask("PRIVMSG spark-ori :welcome") == []


async def test_an_empty_text_is_being_back(crowd: Crowd) -> None:
    """RFC 2812 §4.1"""
    ori = await crowd.join("spark-ori")
    assert codes(await ori.ask("AWAY :")) == ["305"]
    assert codes(await ori.ask("AWAY gone")) == ["306"]
    assert codes(await ori.ask("AWAY :")) == ["305"]


async def test_a_long_text_is_cut_between_characters(serve: Serve) -> None:
    """005 AWAYLEN, in bytes; 301 fits into a line"""
    async with (
        serve(limits={"away_length": 51}) as ircd,
        registered(ircd.port, "spark-ori") as ori,
        registered(ircd.port, "spark-ada") as ada,
    ):
        assert codes(await ori.ask(f"AWAY :{'é' * 100}")) == ["306"]
        assert lines(await ada.ask("PRIVMSG spark-ori :hello"))[0][3] == "é" * 25


async def test_the_longest_text_fits_beside_the_longest_names(crowd: Crowd) -> None:
    """RFC 2812 §2.3"""
    ori, ada = await crowd.join("spark-" + "o" * 26), await crowd.join("spark-" + "a" * 26)
    await ori.ask(f"AWAY :{'🙂' * 120}")
    ada.send(f"PRIVMSG {ori.nick} :hello")
    raw = await ada.line()
    assert len(raw) <= LINE_LIMIT
    assert raw.endswith("🙂\r\n".encode())


class OneAccount:
    """Takes everybody for the same person."""

    def authenticate(self, connection: Credentials) -> ServerIdentity:
        """Admit."""
        return ServerIdentity("ori", "human")


async def test_a_user_is_away_in_all_sessions(serve: Serve) -> None:
    """Decision 1: one user, any number of sessions"""
    async with (
        serve(authenticator=OneAccount()) as ircd,
        registered(ircd.port, "spark-ori") as desk,
        registered(ircd.port, "spark-phone") as phone,
    ):
        await desk.ask("AWAY :out")
        assert ircd.parts.network.users["spark-ori"].away == "out"
        assert codes(await phone.ask("AWAY")) == ["305"]
        assert ircd.parts.network.users["spark-ori"].away is None
