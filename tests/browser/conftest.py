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
