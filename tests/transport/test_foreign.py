"""On a server that is not ours: few capabilities, no ids, no history, no accounts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.protocol.vocabulary import UserClass
from culture.transport import ClientIdentity, ConnectionState, Hopeless, NoHistory, NotSent, Transport
from tests.support.client import registered
from tests.support.ngircd import ngircd
from tests.support.proxy import proxied
from tests.transport.conftest import Come, Somebody


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    async with ngircd(tmp_path) as port:
        yield port


@pytest.mark.requirement("F04", "N01")
async def test_talking_works_without_capabilities(port: int, come: Come) -> None:
    ada = await come(port, "ada", ["#general"], agents=["bob"], people=["ori"])
    bob = await come(port, "bob", ["#general"])
    async with registered(port, "ori") as ori:
        await ori.join("#general")
        ori.send("PRIVMSG #general :@ada hello")
        heard = await ada.hears("@ada hello")
        assert (heard.kind, heard.mentions, heard.sender) == (UserClass.HUMAN, ("ada",), "ori")
        assert heard.msgid.startswith("local.")
        assert await bob.irc.send_privmsg("#general", "one\n\ntwo") == []
        await ada.hears("two")
        assert [message.kind for message in ada.heard if message.sender == "bob"] == [UserClass.AGENT] * 2
        assert [message.own for message in bob.heard] == [False, True, True]
        place: Transport = ada.irc
        assert [message.text for message in await place.read("#general")] == ["@ada hello", "one", "two"]
        assert sorted(await place.get_members("#general")) == ["ada", "bob", "ori"]
        assert "#general" in await place.list_channels()
        await place.create_channel("#new")
        assert sorted(ada.irc.channels) == ["#general", "#new"]
        await place.send("#general", "from the protocol", "ada")
        await ori.expect("PRIVMSG", "#general", "from the protocol")
        with pytest.raises(NotSent, match="ori is not on this connection"):
            await place.send("#general", "as somebody else", "ori")


async def test_errors_are_found_without_labels(port: int, come: Come) -> None:
    ada = await come(port, "ada", ["#general"])
    async with registered(port, "ori") as ori:
        await ori.join("#general")
        await ada.irc.request("PING", "here")
        for target, meant in (("orri", "ori"), ("#generl", "#general")):
            with pytest.raises(NotSent, match=f"did you mean {meant}"):
                await ada.irc.send_privmsg(target, "hello")
    with pytest.raises(NoHistory):
        await ada.irc.history("#general")
    assert not await ada.irc.set_metadata("agentirc.dev/state", "idle")


@pytest.mark.requirement("F21", "F22", "F24")
async def test_after_a_cut_it_is_back(port: int, come: Come) -> None:
    async with proxied(port) as way:
        ada = await come(way.port, "ada", ["#general"])
        await ada.irc.join_channel("#later")
        await ada.irc.set_away("lunch")
        way.cut()
        await ada.until(lambda: not ada.irc.connected)
        way.heal()
        await ada.connected(times=2)
        assert sorted(ada.irc.channels) == ["#general", "#later"]
        (member,) = await ada.irc.send_who("ada")
        assert member.away


@pytest.mark.fault("E23")
async def test_a_ghost_is_outlived_without_monitor(port: int, come: Come) -> None:
    async with registered(port, "ada") as ghost:
        ada = await come(port, "ada", ["#general"])
        assert ada.irc.nick == "ada_"
        async with registered(port, "ori") as ori:
            await ori.join("#general")
            ghost.send("QUIT")
            await ori.expect("NICK", "ada")
            await ori.ask("PRIVMSG #general :there you are")
            await ada.hears("there you are")
    assert ada.irc.nick == "ada"


async def test_a_wrong_server_password_is_hopeless(tmp_path: Path) -> None:
    async with ngircd(tmp_path, password="open-sesame") as port:
        wrong = Somebody(port, "", identity=ClientIdentity("ada", secret="sesame"))
        with pytest.raises(Hopeless, match=r"(?i)password"):
            await wrong.irc.start()
        right = Somebody(port, "", identity=ClientIdentity("ada", secret="open-sesame"))
        await right.irc.start()
        assert right.states[-1][0] is ConnectionState.CONNECTED
        await right.irc.stop()


async def test_a_login_is_not_skipped_where_there_are_none(port: int) -> None:
    ada = Somebody(port, "", identity=ClientIdentity("ada", "ada", "very secret"))
    with pytest.raises(Hopeless, match="no logins"):
        await ada.irc.start()
