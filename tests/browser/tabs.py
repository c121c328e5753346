"""Tabs of real browsers; whatever a browser complains about is a failure."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request, Response, expect

from culture.web.login_links import make_link
from tests.support.web import Site

DESK = "desk"
PHONE = "phone"
SIZES = (DESK, PHONE)
_OPTIONS: dict[str, dict[str, Any]] = {
    DESK: {"viewport": {"width": 1280, "height": 800}},
    PHONE: {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}
_PATIENCE = 30_000
_WATCH = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`policy: ${event.effectiveDirective} ${event.blockedURI}`);
});
"""
expect.set_options(timeout=_PATIENCE)


@dataclass
class Tabs:
    """Browsers of people, who do not share cookies; ``complaints`` is all that went wrong in any of them."""

    chromium: Browser
    complaints: list[str] = field(default_factory=list)
    is_cut_off: bool = False
    """The page is not there, and browsers may say so."""
    _forgiven: set[str] = field(default_factory=set)
    _contexts: list[BrowserContext] = field(default_factory=list)

    async def open(self, size: str = DESK, **options: Any) -> Page:
        """A tab in a browser that has never been anywhere."""
        context = await self.chromium.new_context(**_OPTIONS[size], **options)
        self._contexts.append(context)
        context.set_default_timeout(_PATIENCE)
        await context.add_init_script(_WATCH)
        page = await context.new_page()
        page.on("console", self._said)
        page.on("pageerror", lambda error: self._complain(f"error: {error}"))
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)
        return page

    async def enter(self, site: Site, account: str, size: str = DESK, path: str = "", **options: Any) -> Page:
        """A tab of somebody who has come in by a link, and gone on to this path."""
        page = await self.open(size, **options)
        await page.goto(f"{site.url}/login/{make_link(site.settings.folder, account)}")
        await press(page.get_by_role("button", name=f"Log in as {account}"))
        await expect(page.locator("#room")).to_be_visible()
        if path:
            await page.goto(site.url + path)
        return page

    def forgive(self, status: int) -> None:
        """It was right to answer this way, and browsers show it as an error, some of them a moment later."""
        self._forgiven.add(str(status))
        self.complaints[:] = [each for each in self.complaints if not self._is_forgiven(each)]

    async def close(self) -> None:
        """Close them all."""
        for context in self._contexts:
            await context.close()

    def _complain(self, text: str) -> None:
        if not self.is_cut_off and not self._is_forgiven(text):
            self.complaints.append(text)

    def _is_forgiven(self, text: str) -> bool:
        return any(status in text for status in self._forgiven)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._complain(f"console: {message.text}")

    def _failed(self, request: Request) -> None:
        # Whoever leaves a page breaks off what it was loading.
        if request.failure != "net::ERR_ABORTED":
            self._complain(f"failed: {request.method} {request.url}: {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self._complain(f"answered: {response.status} {response.url}")


@asynccontextmanager
async def watched(chromium: Browser) -> AsyncIterator[Tabs]:
    """Tabs in which nothing may go wrong."""
    tabs = Tabs(chromium)
    try:
        yield tabs
    finally:
        await tabs.close()
    assert tabs.complaints == []


async def press(what: Locator) -> None:
    """With a finger, where there is no mouse."""
    if await what.page.evaluate("navigator.maxTouchPoints > 0"):
        await what.tap()
    else:
        await what.click()


async def find(page: Page, words: str) -> None:
    """Look for what was said, from whatever page this is."""
    field = page.locator("header input[name=q]:visible").first
    if not await field.count():
        await press(page.locator("details.more > summary"))
    await field.fill(words)
    await field.press("Enter")


async def go(page: Page, title: str) -> None:
    """By the navigation."""
    link = page.locator("#nav").get_by_role("link", name=title)
    if not await link.is_visible():
        await press(page.locator("details.more > summary"))
    await press(link)
    await expect(page).to_have_title(f"{title} · spark")


async def say(page: Page, text: str) -> None:
    """In the room that is open."""
    await page.locator("#text").fill(text)
    await press(page.get_by_role("button", name="Send"))


def line(page: Page, text: str) -> Locator:
    """A message of the room that is open."""
    return page.locator("#messages li").filter(has_text=text)


async def shows(page: Page, texts: Iterable[str]) -> None:
    """Wait until the room shows these, each once."""
    for text in texts:
        await expect(line(page, text)).to_have_count(1)
