"""A program that acts for people: whom it may be, how that is seen, when it ends (protocol/extensions/on-behalf)."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from tests.support.client import Client, connected
from tests.support.people import PASSWORD, accounts_of, authenticate, come_in, plain, verifier
from tests.support.servers import serving


@dataclass(frozen=True)
class Page:
    """A server with people, an agent and a bot, and the token of the page that acts for people there."""

    ircd: IRCd
    store: AccountStore
    token: str

    @asynccontextmanager
    async def seat(self, person: str) -> AsyncIterator[Client]:
        """A session of somebody who is logged in to the page."""
        async with connected(self.ircd.port) as client:
            assert (await authenticate(client, "PLAIN", acting(person, "web", self.token))).verb == "903"
            await come_in(client, f"spark-{person}")
            yield client

    async def refuses(self, person: str, account: str, secret: str) -> bool:
        async with connected(self.ircd.port) as client:
            return (await authenticate(client, "PLAIN", acting(person, account, secret))).verb == "904"


def acting(person: str, account: str, secret: str) -> str:
    """RFC 4616 with an authorization identity."""
    return base64.b64encode(f"{person}\0{account}\0{secret}".encode()).decode()


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    store = accounts_of(tmp_path, "ori", "ada")
    store.add(new_account("claude", UserClass.AGENT, verifier=verifier()))
    store.add(new_account("robot", UserClass.BOT, verifier=verifier()))
    store.add(new_account("web", UserClass.BOT, verifier=verifier(), via="web"))
    token = store.add_token("web", "page")
    async with serving(tmp_path, accounts_file=store.path) as ircd:
        yield Page(ircd, store, token)


async def told_of(asking: Client, nick: str) -> list[str]:
    """Where WHOIS says somebody is."""
    told = [each.params[-1] for each in await asking.ask(f"WHOIS {nick}") if each.verb == "320"]
    return [text for text in told if "here via" in text]


async def test_a_person_speaks_through_the_page_and_whois_says_so(page: Page) -> None:
    async with page.seat("ori") as seat, connected(page.ircd.port) as ada:
        await authenticate(ada, "PLAIN", plain("ada", PASSWORD))
        ada.send("CAP REQ message-tags")
        await come_in(ada, "spark-ada")
        user = page.ircd.parts.network.users["spark-ori"]
        assert (user.account, user.kind) == ("ori", UserClass.HUMAN)
        seat.send("PRIVMSG spark-ada :hello")
        said = await ada.expect("PRIVMSG")
        assert said.source.startswith("spark-ori!") and said.tags["agentirc.dev/class"] == "human"
        assert await told_of(ada, "spark-ori") == ["is here via web"]
        assert await told_of(seat, "spark-ada") == []
        seat.send("QUIT")
        await seat.ended()
        assert await told_of(ada, "spark-ori") == []


async def test_whoever_is_here_with_a_client_too_is_one_person(page: Page) -> None:
    async with connected(page.ircd.port) as client, page.seat("ori") as seat:
        await authenticate(client, "PLAIN", plain("ori", PASSWORD))
        await come_in(client, "spark-ori")
        assert len(page.ircd.parts.network.users) == 1
        assert await told_of(client, "spark-ori") == await told_of(seat, "spark-ori") == ["is here via web"]


@pytest.mark.parametrize("person", ["claude", "robot", "web2", "nobody", "spark-claude", "*", "ori\x00ada"], ids=repr)
async def test_only_a_person_can_be_acted_for(page: Page, person: str) -> None:
    page.store.add(new_account("web2", UserClass.BOT, via="web"))
    assert await page.refuses(person, "web", page.token)


@pytest.mark.parametrize("account", ["ada", "robot", "claude", "nobody"])
async def test_no_other_account_acts_for_anybody(page: Page, account: str) -> None:
    assert await page.refuses("ori", account, PASSWORD)


async def test_a_wrong_secret_acts_for_nobody(page: Page) -> None:
    assert await page.refuses("ori", "web", "wrong")
    assert not await page.refuses("ori", "web", PASSWORD)


async def test_a_revoked_person_or_page_cannot_begin(page: Page) -> None:
    page.store.revoke("ada")
    assert await page.refuses("ada", "web", page.token)
    page.store.revoke("web")
    assert await page.refuses("ori", "web", page.token)


async def test_revoking_the_page_ends_what_it_began_and_nothing_else(page: Page) -> None:
    async with connected(page.ircd.port) as client, page.seat("ori") as seat, page.seat("ada") as other:
        await authenticate(client, "PLAIN", plain("ori", PASSWORD))
        await come_in(client, "spark-ori")
        page.store.revoke("web")
        async with asyncio.timeout(30):
            assert "may no longer act for you" in (await seat.ended())[-1].params[-1]
            await other.ended()
        assert await told_of(client, "spark-ori") == []


async def test_revoking_a_person_ends_their_sessions_on_the_page(page: Page) -> None:
    async with page.seat("ori") as seat, page.seat("ada") as other:
        page.store.revoke("ori")
        async with asyncio.timeout(30):
            await seat.ended()
        assert "spark-ori" not in page.ircd.parts.network.users
        assert await told_of(other, "spark-ada") == ["is here via web"]


async def test_a_page_revoked_while_its_password_is_checked_acts_for_nobody(page: Page) -> None:
    """What was true when the check began is looked at again when it has ended."""
    turns = page.ircd.parts.logins._passwords.turns
    async with connected(page.ircd.port) as client:
        client.send("CAP REQ sasl")
        client.send("AUTHENTICATE PLAIN")
        await client.expect("AUTHENTICATE", "+")
        async with turns, turns:  # all there are, so that the check waits
            client.send(f"AUTHENTICATE {acting('ori', 'web', PASSWORD)}")
            async with connected(page.ircd.port) as bystander:
                await bystander.sync()
            page.store.revoke("web")
            page.ircd.parts.accounts.catch_up()
        assert (await client.receive()).verb == "904"


@pytest.mark.fault("C3")
async def test_wrong_passwords_at_the_page_keep_nobody_out_of_it(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """C3: all people of a page come from one address, also where nobody can tell whose connection it is."""
    monkeypatch.setattr("culture.server.auth.login_attempts._who", lambda session: "the page's address")
    async with connected(page.ircd.port) as guessing:
        for _ in range(4):
            assert (await authenticate(guessing, "PLAIN", plain("ori", "wrong"))).verb == "904"
    async with connected(page.ircd.port) as ori:
        assert "Too many" in (await authenticate(ori, "PLAIN", plain("ori", PASSWORD))).params[-1]
    async with page.seat("ori"):
        assert await page.refuses("claude", "web", page.token)
    async with page.seat("ada"):
        assert await page.refuses("ori", "web", "wrong")
