"""Several sessions of one person: where one of them goes, the others are too (decision 1)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.support.client import Client, connected, registered
from tests.support.people import PASSWORD, accounts_of, authenticate, come_in, plain
from tests.support.servers import serving


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    """A server with the account ori."""
    async with serving(tmp_path, accounts_file=accounts_of(tmp_path, "ori").path) as running:
        yield running


@asynccontextmanager
async def device(ircd: IRCd) -> AsyncIterator[Client]:
    """One more session of ori."""
    async with connected(ircd.port) as client:
        assert (await authenticate(client, "PLAIN", plain("ori", PASSWORD))).verb == "903"
        await come_in(client, "spark-ori")
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
