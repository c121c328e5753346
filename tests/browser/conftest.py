"""Chromium without a window, and pages for it from loopback."""

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, async_playwright

from culture.cli.agents import agent_login
from culture.protocol.vocabulary import UserClass
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from tests.browser.tabs import Tabs, watched
from tests.support.people import accounts_of, verifier
from tests.support.servers import serving
from tests.support.web import Site, settings_for, site_for

_PAGE = Path(__file__).with_name("page.html")


class _Handler(BaseHTTPRequestHandler):
    """Answers whatever is asked with the one page there is."""

    def do_GET(self) -> None:
        content = _PAGE.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def _site() -> Iterator[str]:
    """Serves the page; its origin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def site() -> Iterator[str]:
    """Where the page is that may connect."""
    with _site() as origin:
        yield origin


@pytest.fixture
def other_site() -> Iterator[str]:
    """Where the same page is that may not."""
    with _site() as origin:
        yield origin


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    """The browser, started once."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("not installed: chromium")
    # Chromium's own sandbox does not work for root; only our own page is opened.
    options = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.getuid() == 0 else [])]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=options)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="module")
async def browser(chromium: Browser) -> AsyncIterator[BrowserContext]:
    """A browser that has never been anywhere; it takes certificates that nobody vouches for."""
    context = await chromium.new_context(ignore_https_errors=True)
    context.set_default_timeout(30_000)
    yield context
    await context.close()


@pytest_asyncio.fixture(loop_scope="module")
async def tabs(chromium: Browser) -> AsyncIterator[Tabs]:
    """Browsers of people in which nothing may go wrong."""
    async with watched(chromium) as made:
        yield made


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of everything on this machine, while a module is tried."""
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_HOME", str(folder))
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ircd(home: Path) -> AsyncIterator[IRCd]:
    """A server that knows ori, ada, and two agents: imp, which tests play, and bee, which has a daemon."""
    store = accounts_of(home, "ori", "ada")
    store.add(new_account("imp", UserClass.AGENT, verifier=verifier()))
    agent_login.ensure_account("spark-bee", store, always_on=False)
    async with serving(home) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def culture_page(home: Path, ircd: IRCd) -> AsyncIterator[Site]:
    """The server's web page."""
    async with site_for(settings_for(home, ircd.port)) as running:
        yield running
