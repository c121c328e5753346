"""Parts of a page follow the news, also where news come in a rush or while a part is on its way."""

import asyncio

import pytest
from playwright.async_api import Route, expect

from culture.server.ircd import IRCd
from tests.browser.tabs import DESK, PHONE, Tabs, press
from tests.support.client import registered
from tests.support.web import Site

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_last_of_a_rush_is_shown(tabs: Tabs, culture_page: Site, ircd: IRCd) -> None:
    """Each follows upon what is shown of the one before: who is here and what is unread are right in the end."""
    ori = await tabs.enter(culture_page, "ori", DESK)
    async with registered(ircd.port, "spark-one") as one, registered(ircd.port, "spark-two") as two:
        count = ori.locator("#sidebar a").filter(has_text="spark-two").locator(".count")
        for number in range(1, 4):
            two.send(f"PRIVMSG spark-ori :letter {number}")
            await expect(count).to_have_text(str(number))
        await one.join("#general")
        await expect(ori.locator("#members")).to_contain_text("spark-one")
        await two.join("#general")
        await expect(ori.locator("#members")).to_contain_text("spark-two")
        two.send("PART #general")
        await expect(ori.locator("#members")).not_to_contain_text("spark-two")


async def test_a_letter_is_noticed_on_every_page(tabs: Tabs, culture_page: Site, ircd: IRCd) -> None:
    ori = await tabs.enter(culture_page, "ori", DESK, "/digest")
    badge = ori.locator("#nav > a").filter(has_text="Rooms").locator(".badge")
    before = int(await badge.text_content() or "0") if await badge.count() else 0
    async with registered(ircd.port, "spark-five") as five:
        five.send("PRIVMSG spark-ori :are you there?")
        await expect(badge).to_have_text(str(before + 1))


async def test_news_while_a_part_is_on_its_way_are_not_lost(tabs: Tabs, culture_page: Site, ircd: IRCd) -> None:
    ori = await tabs.enter(culture_page, "ori", DESK)
    read, go_on = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        """The answer is made before the news, and arrives after them."""
        if route.request.headers.get("hx-target") != "sidebar" or read.is_set():
            return await route.continue_()
        answer = await route.fetch()
        read.set()
        await go_on.wait()
        await route.fulfill(response=answer)

    await ori.route("**/rooms/**", late)
    async with registered(ircd.port, "spark-three") as three, registered(ircd.port, "spark-four") as four:
        three.send("PRIVMSG spark-ori :one")
        await read.wait()
        heard = await ori.evaluate("lastEventId")
        four.send("PRIVMSG spark-ori :two")
        await ori.wait_for_function("heard => lastEventId !== heard", arg=heard)
        go_on.set()
        await expect(ori.locator("#sidebar a").filter(has_text="spark-three")).to_contain_text("1")
        await expect(ori.locator("#sidebar a").filter(has_text="spark-four")).to_contain_text("1")


async def test_a_menu_that_is_open_stays_open(tabs: Tabs, culture_page: Site) -> None:
    """Whatever happens meanwhile: it would be closed under somebody's finger."""
    ori = await tabs.enter(culture_page, "ori", PHONE)
    await press(ori.locator("details.more > summary"))
    field = ori.locator("details.more input[name=q]")
    await field.fill("half a")
    async with ori.expect_response(lambda answer: answer.request.headers.get("hx-target") == "nav"):
        await ori.evaluate("reload('facts:alert')")
    await expect(field).to_be_visible()
    await expect(field).to_have_value("half a")
    async with ori.expect_response(lambda answer: answer.request.headers.get("hx-target") == "nav"):
        await press(ori.locator("details.more > summary"))
    await expect(field).to_be_hidden()


async def test_a_part_that_cannot_be_fetched_is_in_nobodys_way(tabs: Tabs, culture_page: Site, ircd: IRCd) -> None:
    """Nothing was to be sent: whoever writes is told nothing, and can send."""
    ori = await tabs.enter(culture_page, "ori", DESK)
    failed = asyncio.Event()
    tabs.is_cut_off = True

    async def fail(route: Route) -> None:
        if route.request.headers.get("hx-target") != "sidebar":
            return await route.continue_()
        await route.abort()
        failed.set()

    await ori.route("**/rooms/**", fail)
    async with registered(ircd.port, "spark-six") as six:
        six.send("PRIVMSG spark-ori :a letter")
        await failed.wait()
        await six.join("#general")
        await expect(ori.locator("#members")).to_contain_text("spark-six")
        await expect(ori.locator("#result")).to_be_empty()
        await ori.locator("#text").fill("sent all the same")
        await press(ori.get_by_role("button", name="Send"))
        await six.expect("PRIVMSG", "#general", where=lambda line: line.params[1] == "sent all the same")
    await ori.unroute_all(behavior="ignoreErrors")
    tabs.is_cut_off = False
