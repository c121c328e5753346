"""The web page in a browser, at a desk and on a phone: coming in, reading, writing, looking for what was said."""

import re

import pytest
from playwright.async_api import expect

from culture.server.ircd import IRCd
from culture.web.login_links import make_link
from tests.browser.tabs import DESK, PHONE, SIZES, Tabs, find, line, press, say, shows
from tests.support.client import registered
from tests.support.people import PASSWORD
from tests.support.web import Site

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("size", SIZES)
async def test_somebody_logs_in_reads_writes_and_searches(
    tabs: Tabs, culture_page: Site, ircd: IRCd, size: str
) -> None:
    async with registered(ircd.port, "spark-guest") as guest:
        await guest.join("#general")
        guest.send(f"PRIVMSG #general :the harvest on the {size} was good 🌾")
        await guest.sync()
        page = await tabs.open(size)
        await page.goto(culture_page.url)
        await page.get_by_label("Account").fill("ori")
        await page.get_by_label("Password").fill(PASSWORD)
        await press(page.get_by_role("button", name="Log in"))
        await shows(page, [f"the harvest on the {size} was good 🌾"])
        await say(page, f"shall we celebrate on the {size}?")
        await expect(line(page, f"shall we celebrate on the {size}?")).to_contain_text("spark-ori")
        said = await guest.expect("PRIVMSG", "#general", f"shall we celebrate on the {size}?")
        assert said.source.startswith("spark-ori!")
        await expect(page.locator("#text")).to_have_value("")
        guest.send(f"PRIVMSG #general :@spark-ori with cake, {size}")
        await shows(page, [f"with cake, {size}"])
        await find(page, f"harvest {size}")
        hit = page.locator(".hits li").filter(has_text=f"the harvest on the {size}")
        await expect(hit).to_have_count(1)
        await press(hit.get_by_role("link"))
        await expect(line(page, f"the harvest on the {size}")).to_have_class(re.compile(r"\bhighlighted\b"))
        await expect(line(page, f"the harvest on the {size}")).to_be_in_viewport()


async def test_a_wrong_password_is_told_and_nothing_typed_is_lost(tabs: Tabs, culture_page: Site) -> None:
    page = await tabs.open(PHONE)
    await page.goto(f"{culture_page.url}/login")
    await page.get_by_label("Account").fill("ada")
    await page.get_by_label("Password").fill("wrong")
    await press(page.get_by_role("button", name="Log in"))
    await expect(page.get_by_role("alert").first).to_have_text("Account or password are wrong.")
    await expect(page.get_by_label("Account")).to_have_value("ada")
    tabs.forgive(403)


@pytest.mark.parametrize("size", SIZES)
async def test_a_link_logs_in_once(tabs: Tabs, culture_page: Site, size: str) -> None:
    link = f"{culture_page.url}/login/{make_link(culture_page.settings.folder, 'ada')}"
    page = await tabs.open(size)
    await page.goto(link)
    await expect(page.get_by_text("This link logs you in as ada, once.")).to_be_visible()
    await press(page.get_by_role("button", name="Log in as ada"))
    await expect(page.locator("#room h1")).to_have_text("#general")
    other = await tabs.open(size)
    await other.goto(link)
    await expect(other.get_by_role("alert").first).to_contain_text("has already been used")
    tabs.forgive(410)


async def test_two_people_talk_in_two_browsers(tabs: Tabs, culture_page: Site) -> None:
    ori = await tabs.enter(culture_page, "ori", DESK)
    ada = await tabs.enter(culture_page, "ada", PHONE)
    await say(ori, "good morning, @spark-ada")
    await shows(ada, ["good morning, @spark-ada"])
    await expect(line(ada, "good morning, @spark-ada")).to_have_class(re.compile(r"\bmention\b"))
    await say(ada, "and to you")
    await shows(ori, ["and to you"])
    await expect(line(ori, "and to you").locator(".who")).to_have_text("spark-ada")
    await expect(ori.locator("#members")).to_contain_text("spark-ada")
    await ada.goto(f"{culture_page.url}/rooms/spark-ori")
    await say(ada, "just between us")
    await expect(ori.locator("#sidebar a").filter(has_text="spark-ada")).to_contain_text("1")
    await press(ori.locator("#sidebar a").filter(has_text="spark-ada"))
    await shows(ori, ["just between us"])
    await expect(ori.locator("#sidebar .count")).to_have_count(0)


async def test_the_keyboard_is_enough(tabs: Tabs, culture_page: Site, ircd: IRCd) -> None:
    """Log in, write, look for something, go to another room: no mouse."""
    async with registered(ircd.port, "spark-guest") as guest:
        await guest.join("#workshop")
        page = await tabs.open()
        keys = page.keyboard
        await page.goto(culture_page.url)
        await expect(page.get_by_label("Account")).to_be_focused()
        await keys.type("ori")
        await keys.press("Tab")
        await keys.type(PASSWORD)
        await keys.press("Enter")
        await expect(page.locator("#text")).to_be_focused()
        await keys.type("/join #workshop")
        await keys.press("Enter")
        await expect(page.locator("#room h1")).to_have_text("#workshop")
        await expect(page.locator("#text")).to_be_focused()
        await keys.type("first line")
        await keys.press("Shift+Enter")
        await keys.type("with the keyboard")
        await keys.press("Enter")
        await guest.expect("PRIVMSG", "#workshop", "with the keyboard")
        await shows(page, ["with the keyboard"])
        await keys.press("Escape")
        await keys.press("/")
        await expect(page.locator("#search")).to_be_focused()
        await keys.type("keyboard")
        await keys.press("Enter")
        await expect(page.locator(".hits li")).to_have_count(1)
        await keys.press("Escape")
        await page.go_back()
        await expect(page.locator("#text")).to_be_focused()
        await keys.press("Escape")
        await keys.press("k")
        await expect(page.locator("#room h1")).to_have_text("#general")
        await expect(page.locator("#text")).to_be_focused()
