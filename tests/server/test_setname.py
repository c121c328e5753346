"""SETNAME: another real name while connected."""

import pytest

from culture.protocol.stream import LINE_LIMIT
from tests.server.conftest import Crowd
from tests.server.rooms import codes, lines
from tests.support.client import registered
from tests.support.servers import Serve


async def test_a_new_name_is_shown_and_known(crowd: Crowd) -> None:
    """IRCv3 setname: to oneself and those who share a channel, as far as they asked"""
    ori = await crowd.join("spark-ori", "#a", "#b", caps="setname")
    ada = await crowd.join("spark-ada", "#a", "#b", caps="setname")
    bob = await crowd.join("spark-bob", "#a")
    for client in (ori, ada):
        await client.sync()
    assert lines(await ori.ask("SETNAME :Ori the Great")) == [("SETNAME", "Ori the Great")]
    (told,) = await ada.sync()
    assert (told.verb, told.params) == ("SETNAME", ("Ori the Great",))
    assert told.source.startswith("spark-ori!")
    assert await bob.sync() == []
    whois = await bob.ask("WHOIS spark-ori")
    assert whois[0].params[-1] == "Ori the Great"
    assert await bob.ask("SETNAME Bob") == []
    assert (await bob.ask("WHOIS spark-bob"))[0].params[-1] == "Bob"


@pytest.mark.parametrize("name", ["", " ", "x" * 151, "é" * 76])
async def test_what_is_no_name_is_refused(crowd: Crowd, name: str) -> None:
    """IRCv3 setname and standard replies; 005 NAMELEN, in bytes"""
    ori = await crowd.join("spark-ori", caps="setname standard-replies")
    (refused,) = await ori.ask(f"SETNAME :{name}")
    assert (refused.verb, *refused.params[:2]) == ("FAIL", "SETNAME", "INVALID_REALNAME")
    assert refused.source == "spark"
    assert (await ori.ask("WHOIS spark-ori"))[0].params[-1] == "A Tester"
    assert codes(await ori.ask("SETNAME")) == ["461"]


async def test_the_longest_name_is_a_setting_and_fits_into_a_line(serve: Serve) -> None:
    """005 NAMELEN"""
    async with serve(limits={"realname_length": 5}) as ircd, registered(ircd.port, "spark-ori", "setname") as ori:
        assert codes(await ori.ask("SETNAME :123456")) == ["FAIL"]
        assert lines(await ori.ask("SETNAME :12345")) == [("SETNAME", "12345")]
        assert any("NAMELEN=5" in each.params for each in await ori.ask("VERSION"))
    async with serve(limits={"realname_length": 600}) as ircd, registered(ircd.port, "spark-ori", "setname") as ori:
        assert codes(await ori.ask("SETNAME :" + "x" * 499)) == ["FAIL"]
        ori.send("SETNAME :" + "x" * 460)
        assert len(await ori.line()) <= LINE_LIMIT
