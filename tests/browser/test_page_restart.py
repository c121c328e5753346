"""A tab that stays open while servers stop and start again: it recovers by itself, and nothing typed is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, Route, expect

from culture.config.model import Listen
from culture.server.ircd import IRCd
from tests.browser.tabs import DESK, PHONE, Tabs, press, say, shows
from tests.support.client import registered
from tests.support.people import accounts_of
from tests.support.ports import reserved
from tests.support.servers import serving
from tests.support.web import Site, settings_for, site_for

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(150)]


class Place:
    """A server and a page that can be stopped and started again, in the same places."""

    def __init__(self, home: Path, port: int, page_port: int) -> None:
        self.port = port
        self.settings = replace(settings_for(home, port), port=page_port)
        self._home = home
        self._server = AsyncExitStack()
        self._page = AsyncExitStack()

    async def start_server(self) -> IRCd:
        return await self._server.enter_async_context(serving(self._home, listen=(Listen(port=self.port),)))

    async def stop_server(self) -> None:
        await self._server.aclose()

    async def start_page(self) -> Site:
        return await self._page.enter_async_context(site_for(self.settings))

    async def stop_page(self) -> None:
        await self._page.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(home: Path) -> AsyncIterator[Place]:
    accounts_of(home, "ori", "ada")
    with reserved() as port, reserved() as page_port:
        made = Place(home, port, page_port)
        await made.start_server()
        await made.start_page()
        yield made
        await made.stop_page()
        await made.stop_server()


def _site(place: Place) -> Site:
    return Site(place.settings, f"http://127.0.0.1:{place.settings.port}")


async def _typed(tabs: Tabs, place: Place, half: str) -> list[Page]:
    pages = [await tabs.enter(_site(place), "ori", DESK), await tabs.enter(_site(place), "ada", PHONE)]
    for page in pages:
        await page.locator("#text").fill(half)
        await page.evaluate("window.isStillHere = true")
    return pages


async def _recovered(pages: list[Page], half: str, *texts: str) -> None:
    for page in pages:
        await expect(page.locator("#link-state")).to_be_hidden()
        await shows(page, texts)
        await expect(page.locator("#text")).to_have_value(half)
        assert await page.evaluate("window.isStillHere")
    await press(pages[0].get_by_role("button", name="Send"))
    await expect(pages[0].locator("#text")).to_have_value("")
    await shows(pages[1], [half])


async def test_a_tab_outlives_a_restart_of_the_server(tabs: Tabs, place: Place) -> None:
    half = "half of a sentence"
    pages = await _typed(tabs, place, half)
    await say(pages[0], "before the server stops")
    await pages[0].locator("#text").fill(half)
    await shows(pages[1], ["before the server stops"])
    await place.stop_server()
    for page in pages:
        await expect(page.locator("#link-state")).to_contain_text("cannot be reached")
    await place.start_server()
    async with registered(place.port, "spark-guest") as guest:
        await guest.join("#general")
        guest.send("PRIVMSG #general :said when nobody was back yet")
        await guest.sync()
        await _recovered(pages, half, "before the server stops", "said when nobody was back yet")
        guest.send("PRIVMSG #general :said when all were back")
        for page in pages:
            await shows(page, ["said when all were back"])


async def test_a_tab_outlives_a_restart_of_the_page(tabs: Tabs, place: Place) -> None:
    half = "the other half"
    pages = await _typed(tabs, place, half)
    await say(pages[0], "before the page stops")
    await pages[0].locator("#text").fill(half)
    await shows(pages[1], ["before the page stops"])
    tabs.is_cut_off = True
    await place.stop_page()
    for page in pages:
        await expect(page.locator("#link-state")).to_contain_text("Connection lost")
    await press(pages[0].get_by_role("button", name="Send"))
    await expect(pages[0].locator("#say-error")).to_contain_text("Nothing was sent")
    async with registered(place.port, "spark-guest") as guest:
        await guest.join("#general")
        guest.send("PRIVMSG #general :said while there was no page")
        await guest.sync()
        await place.start_page()
        for page in pages:
            await shows(page, ["said while there was no page"])
        tabs.is_cut_off = False
        guest.send("PRIVMSG #general :said when it was there again")
        await _recovered(pages, half, "said while there was no page", "said when it was there again")


async def test_nothing_is_missed_between_a_page_and_its_news(tabs: Tabs, place: Place) -> None:
    """What is said after the page was drawn and before the browser listens."""
    page = await tabs.enter(_site(place), "ori", PHONE)
    asked, goes_on = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        asked.set()
        await goes_on.wait()
        await route.continue_()

    await page.route("**/events*", hold)
    await page.reload()
    await asked.wait()
    async with registered(place.port, "spark-guest") as guest:
        await guest.join("#general")
        guest.send("PRIVMSG #general :said in between")
        await guest.sync()
    goes_on.set()
    await shows(page, ["said in between"])


async def test_a_page_that_is_come_back_to_hears_the_news(tabs: Tabs, place: Place) -> None:
    """A phone keeps a page as it was when one goes elsewhere, and shows it again."""
    page = await tabs.enter(_site(place), "ori", PHONE)
    await page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    async with registered(place.port, "spark-guest") as guest:
        await guest.join("#general")
        guest.send("PRIVMSG #general :said while one was elsewhere")
        await guest.sync()
        await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
        await shows(page, ["said while one was elsewhere"])
