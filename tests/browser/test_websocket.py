"""A page in a browser is a client: who may connect from where, and what arrives (IRCv3 WebSocket, decision 3)."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, Page, expect

from culture.config.listen_policy import WebSocket
from culture.config.model import Listen
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.auth.password import PasswordVerifier
from culture.server.ircd import IRCd
from tests.realclients.asking import BEE, asking_agent
from tests.support.client import registered
from tests.support.servers import serving
from tests.support.tls import made

PASSWORD = "pässwörd ñ"
pytestmark = pytest.mark.asyncio(loop_scope="module")
TEXT = "héllo wörld 🎉 日本語 👩‍🚀"
Serve = Callable[..., AbstractAsyncContextManager[IRCd]]


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The account ori, made once."""
    store = AccountStore(tmp_path_factory.mktemp("accounts") / "accounts.json", "spark")
    store.add(new_account("ori", UserClass.HUMAN, verifier=PasswordVerifier.of(PASSWORD)))
    return store.path


@pytest.fixture
def serve(tmp_path: Path, accounts: Path, site: str) -> Serve:
    """``async with serve() as ircd``: it knows ori; its first port is plain IRC, its second one for the site's page."""
    return partial(_serving, tmp_path, accounts, site)


@asynccontextmanager
async def _serving(folder: Path, accounts: Path, site: str, secure: bool = False) -> AsyncIterator[IRCd]:
    tls = made(folder, "127.0.0.1")[0] if secure else None
    listen = (Listen(port=0), Listen(port=0, tls=tls, websocket=WebSocket(origins=(site,))))
    async with serving(folder, listen=listen, accounts_file=accounts) as ircd:
        yield ircd


async def opened(browser: BrowserContext, site: str, url: str, password: str = "") -> Page:
    """The page of this site, told to connect."""
    page = await browser.new_page()
    await page.goto(site)
    await page.evaluate("words => connect(...words)", [url, "spark-ori", "ori", password])
    return page


async def shows(page: Page, pattern: str) -> None:
    """Wait until the page has a line that is this."""
    await expect(page.locator("li").filter(has_text=re.compile(pattern)).first).to_be_visible(timeout=30_000)


@pytest.mark.parametrize("scheme", ["ws", "wss"])
async def test_a_page_logs_in_and_chats(browser: BrowserContext, site: str, serve: Serve, scheme: str) -> None:
    """IRCv3 WebSocket, text.ircv3.net: both ways, with nothing lost of what is not ASCII."""
    async with (
        serve(secure=scheme == "wss") as ircd,
        registered(ircd.port, "spark-guest") as guest,
    ):
        await guest.join("#general")
        page = await opened(browser, site, f"{scheme}://127.0.0.1:{ircd.ports[1]}", PASSWORD)
        await shows(page, "^open text.ircv3.net$")
        await shows(page, "^:spark 900 .* :You are now logged in as ori$")
        await shows(page, "^:spark 001 spark-ori ")
        await page.evaluate("say('JOIN #general')")
        await shows(page, "^:spark 366 spark-ori #general ")
        await guest.expect("JOIN", "#general")
        await page.evaluate("text => say('PRIVMSG #general :' + text)", TEXT)
        said = await guest.expect("PRIVMSG", "#general", TEXT)
        assert said.source.startswith("spark-ori!")
        guest.send(f"PRIVMSG #general :{TEXT}")
        await shows(page, f"^:spark-guest!\\S+ PRIVMSG #general :{TEXT}$")
        assert ircd.parts.network.users["spark-ori"].account == "ori"
        await page.evaluate("say('QUIT :bye')")
        await shows(page, "^ERROR :")
        await shows(page, "^closed cleanly 1000$")


async def test_a_page_from_elsewhere_may_not_connect(browser: BrowserContext, other_site: str, serve: Serve) -> None:
    """Decision 3: any page can open a socket to its reader's own machine, so only the listed origins may."""
    async with serve() as ircd:
        page = await opened(browser, other_site, f"ws://127.0.0.1:{ircd.ports[1]}", PASSWORD)
        await shows(page, "^closed rudely 1006$")
        assert await page.locator("li").count() == 1, "not a line of IRC"
        assert ircd.parts.network.users == {}


@pytest.mark.parametrize("password", ["", "wrong"])
async def test_a_page_without_a_login_may_not_come_in(
    browser: BrowserContext, site: str, serve: Serve, password: str
) -> None:
    """Decision 3: a WebSocket is never trusted for being on this machine, whoever's process the browser is."""
    async with serve() as ircd:
        page = await opened(browser, site, f"ws://127.0.0.1:{ircd.ports[1]}", password)
        await shows(page, "^:spark 464 .*Log in to an account.*any web page can open a WebSocket")
        await shows(page, "^ERROR :.*Access denied")
        await shows(page, "^closed cleanly ")
        assert ircd.parts.network.users == {}


async def test_a_page_cannot_reach_a_port_for_plain_irc(browser: BrowserContext, site: str, serve: Serve) -> None:
    """A browser's request is not IRC, and a page learns nothing from it."""
    async with serve() as ircd:
        page = await opened(browser, site, f"ws://127.0.0.1:{ircd.port}", PASSWORD)
        await shows(page, "^closed rudely 1006$")
        assert await page.locator("li").count() == 1
        assert ircd.parts.network.users == {}


@pytest.mark.fault("J1")
async def test_a_page_sees_a_question_and_answers_it(
    browser: BrowserContext, site: str, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same flow as in weechat and irssi, over a WebSocket."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("CULTURE_HOME", str(home))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))
    async with serve() as ircd:
        page = await opened(browser, site, f"ws://127.0.0.1:{ircd.ports[1]}", PASSWORD)
        await shows(page, "^:spark 001 spark-ori ")
        await page.evaluate("say('JOIN #general')")
        async with asking_agent(home, ircd.port):
            await shows(page, f"^:{BEE}!\\S+ JOIN ")
            await page.evaluate(f"say('PRIVMSG #general :@{BEE} delete the old branches')")
            await shows(page, f"^:{BEE}!\\S+ PRIVMSG #general :\\[QUESTION\\] Delete the 47 branches\\?$")
            await shows(page, f":Waiting for response. Reply with: @{BEE} yes/no/abort$")
            await page.evaluate(f"say('PRIVMSG #general :@{BEE} yes but not all')")
            await shows(page, f"^:{BEE}!\\S+ NOTICE spark-ori :I cannot tell what that means for q1")
            await page.evaluate(f"say('PRIVMSG {BEE} :yes q1')")
            await shows(page, f'^:{BEE}!\\S+ NOTICE spark-ori :q1 is answered: "yes"')
            await shows(page, f"^:{BEE}!\\S+ PRIVMSG #general :They said yes.*, so it is done")
