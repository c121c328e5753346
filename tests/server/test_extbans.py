"""Extended bans: by account, and by account for speech alone."""

from collections.abc import AsyncIterator

import pytest

from culture.server.core.state import User, covers, full_mask
from culture.server.ircd import IRCd
from tests.server.rooms import codes, lines
from tests.server.test_notify import ByPassword, log_in
from tests.support.client import Client, connected, registered
from tests.support.servers import Serve


@pytest.fixture
async def room(serve: Serve) -> AsyncIterator[tuple[IRCd, Client, Client]]:
    """The operator of #room, and ada who is logged in as ada."""
    async with (
        serve(authenticator=ByPassword()) as ircd,
        registered(ircd.port, "spark-ori") as ori,
        connected(ircd.port) as ada,
    ):
        await ori.join("#room")
        await log_in(ada, "ada")
        yield ircd, ori, ada


async def test_an_account_is_kept_out(room: tuple[IRCd, Client, Client]) -> None:
    """IRCv3 account-extban: the account, not the nick; it compares without case and may be a mask"""
    ircd, ori, ada = room
    assert lines(await ori.ask("MODE #room +b a:ADA")) == [("MODE", "#room", "+b", "a:ADA")]
    assert codes(await ada.join("#room")) == ["474"]
    await ada.ask("NICK spark-somebody")
    assert codes(await ada.join("#room")) == ["474"]
    async with registered(ircd.port, "spark-ada") as other:
        assert codes(await other.join("#room"))[0] == "JOIN"
    assert lines(await ori.ask("MODE #room -b a:ada"))[-1] == ("MODE", "#room", "-b", "a:ADA")
    await ori.ask("MODE #room +b a:b*")
    assert codes(await ada.join("#room"))[0] == "JOIN"
    await ori.ask("MODE #room +b a:a*")
    assert codes(await ada.ask("PRIVMSG #room :hello"))[-1] == "404"


async def test_an_account_is_excepted(room: tuple[IRCd, Client, Client]) -> None:
    """IRCv3 account-extban with EXCEPTS"""
    ircd, ori, ada = room
    await ori.ask("MODE #room +be *!*@* a:ada")
    assert codes(await ada.join("#room"))[0] == "JOIN"
    async with registered(ircd.port, "spark-eve") as eve:
        assert codes(await eve.join("#room")) == ["474"]


async def test_an_account_needs_no_invitation(room: tuple[IRCd, Client, Client]) -> None:
    """IRCv3 account-extban with INVEX: ``a:*`` is everybody who is logged in"""
    ircd, ori, ada = room
    await ori.ask("MODE #room +iI a:*")
    assert codes(await ada.join("#room"))[0] == "JOIN"
    async with registered(ircd.port, "spark-eve") as eve:
        assert codes(await eve.join("#room")) == ["473"]


async def test_an_account_is_muted(room: tuple[IRCd, Client, Client]) -> None:
    """EXTBAN=,am: both together"""
    _, ori, ada = room
    assert lines(await ori.ask("MODE #room +b m:a:ada")) == [("MODE", "#room", "+b", "m:a:ada")]
    assert codes(await ada.join("#room"))[0] == "JOIN"
    assert codes(await ada.ask("PRIVMSG #room :hello")) == ["404"]
    await ori.ask("MODE #room +e m:a:ada")
    assert codes(await ada.ask("PRIVMSG #room :hello")) == ["MODE"]


@pytest.mark.parametrize("mask", ["a:", "m:a:", "a: b"])
async def test_what_names_nobody_is_refused(room: tuple[IRCd, Client, Client], mask: str) -> None:
    _, ori, _ = room
    assert codes(await ori.ask(f"MODE #room +b :{mask}")) == ["696"]


async def test_the_features_say_so(room: tuple[IRCd, Client, Client]) -> None:
    """005"""
    _, ori, _ = room
    tokens = [token for each in await ori.ask("VERSION") for token in each.params]
    assert {"EXTBAN=,am", "ACCOUNTEXTBAN=a"} <= set(tokens)


@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("ada", "ada!*@*"),
        ("m:ada", "m:ada!*@*"),
        ("a:ada", "a:ada"),
        ("m:a:ada", "m:a:ada"),
        ("m:", ""),
        ("a:", ""),
        ("m:a:", ""),
        ("", ""),
    ],
)
def test_the_mask_in_full(given: str, full: str) -> None:
    assert full_mask(given) == full


def test_without_an_account_no_account_ban_fits() -> None:
    user = User("spark-ada", "~ada", "host", "Ada", "spark", None, "unknown", 0.0)
    assert not covers("a:*", user)
    user.account = "ada"
    assert covers("a:*", user)
    assert not covers("m:a:*", user)
