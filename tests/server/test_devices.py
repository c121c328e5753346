"""Several sessions of one person: where one of them goes, the others are too (decision 1)."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from culture.protocol.vocabulary import UserClass
from culture.server.accounts.model import new_account
from culture.server.accounts.store import AccountStore
from culture.server.accounts.verifier import Verifier
from culture.server.ircd import IRCd
from tests.support.client import Client, connected, registered
from tests.support.servers import serving

PASSWORD = "correct horse"


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    """A server with the account ori."""
    store = AccountStore(tmp_path / "accounts.json", "spark")
    store.add(new_account("ori", UserClass.HUMAN, verifier=Verifier.of(PASSWORD)))
    async with serving(tmp_path, accounts_file=store.path) as running:
        yield running


@asynccontextmanager
async def device(ircd: IRCd) -> AsyncIterator[Client]:
    """One more session of ori."""
    async with connected(ircd.port) as client:
        client.send("CAP REQ :sasl")
        client.send("AUTHENTICATE PLAIN")
        client.send("AUTHENTICATE " + base64.b64encode(f"\0ori\0{PASSWORD}".encode()).decode())
        client.send("NICK spark-ori")
        client.send("USER ori 0 * :Ori")
        client.send("CAP END")
        await client.expect("001", "spark-ori")
        await client.sync()
        yield client


async def test_a_session_that_follows_into_a_channel_is_shown_it(ircd: IRCd) -> None:
    """Decision 1: a client fills its list of members from the NAMES behind its own JOIN, and did not ask for either."""
    async with registered(ircd.port, "spark-guest") as guest, device(ircd) as desk, device(ircd) as phone:
        await guest.join("#tea")
        await guest.ask("TOPIC #tea :at four")
        joined = await desk.join("#tea")
        followed = await phone.sync()
        shown = ["JOIN", "332", "333", "353", "366"]
        assert [each.verb for each in joined] == [each.verb for each in followed] == shown
        assert [each.params for each in joined] == [each.params for each in followed]
        assert [each.verb for each in await guest.sync()] == ["JOIN"]


async def test_whatever_the_first_one_does_the_others_are_told(ircd: IRCd) -> None:
    """Decision 1: leaving, a new nick, a message in private; and a goodbye is for its own session."""
    async with registered(ircd.port, "spark-guest") as guest, device(ircd) as desk, device(ircd) as phone:
        await desk.join("#tea")
        await guest.join("#tea")
        await phone.sync()
        await desk.ask("PRIVMSG spark-guest :psst")
        assert [each.params for each in await phone.sync()] == [("spark-guest", "psst")]
        await phone.ask("NICK spark-ori2")
        assert [each.verb for each in await desk.sync()] == ["NICK"]
        await phone.ask("PART #tea")
        assert [each.verb for each in await desk.sync()] == ["PART"]
        phone.send("QUIT :battery")
        assert (await phone.ended())[-1].verb == "ERROR"
        assert await desk.sync() == []
        assert [each.verb for each in await guest.sync()] == ["PRIVMSG", "NICK", "PART"]
