"""What is written to do something in the browsers of others is shown, and does nothing."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from culture.server.ircd import IRCd
from culture.wiki.pages import Pages
from tests.browser.facts import IMP, imp, person, tell
from tests.browser.tabs import DESK, PHONE, SIZES, Tabs
from tests.support.client import Client, registered
from tests.support.waiting import until
from tests.support.web import Site

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHORT = "<img src=x onerror=canary=1>"
ATTEMPTS = (
    SHORT,
    "<script>canary=1</script>",
    '"><svg onload=canary=1>',
    "'-canary=1-'",
    "<a href='javascript:canary=1'>go</a>",
    "<b hx-get=/logout hx-trigger=load>bold</b>",
    'https://example.org/"onmouseover="canary=1',
    "{{ 7 * 191 }}",
)
ROOM = "#<img/src=x/onerror=canary=1>"
NICK = "spark-<img/src=x/onerror=canary=1>"
WIKI = f"""# {SHORT}

{SHORT} and [go](javascript:canary=1) and ![picture](javascript:canary=1) and <script>canary=1</script>
"""
NOTHING_OF_IT = """() => window.canary === undefined && document.querySelectorAll(
  "img[src=x], script:not([src]), [onerror], [onload], [onmouseover], [href^='javascript:'], [hx-get='/logout']"
).length === 0"""
PLACES = (
    "/today",
    "/rooms",
    "/search?q=canary",
    "/agents",
    f"/agents/{IMP}",
    "/questions",
    "/alerts",
    "/mesh",
    "/team",
    "/spend",
    "/digest",
    "/wiki",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def spoiled(home: Path, ircd: IRCd, culture_page: Site) -> AsyncIterator[Site]:
    """A page where everything that others may write is an attempt."""
    pages = Pages.create(home / "wiki" / "demo")
    pages.write("evil", WIKI, "", "imp", SHORT)
    pages.write("home", f"`evil` {SHORT}", pages.read("home").revision, "imp", SHORT)
    async with registered(ircd.port, "spark-guest") as guest, imp(ircd.port) as agent:
        guest.send(f"NICK {NICK}")
        await guest.expect("432")
        async with person(ircd.port, "ada") as ada:
            await ada.join("#general")
            ada.send(f"TOPIC #general :{SHORT}")
            await ada.sync()
        for room in ("#general", ROOM):
            await guest.join(room)
            guest.send(f"TOPIC {room} :{SHORT}")
            for attempt in ATTEMPTS:
                guest.send(f"PRIVMSG {room} :{attempt}")
        await guest.sync()
        await _claim(agent)
        yield culture_page


async def _claim(agent: Client) -> None:
    text = dict.fromkeys(("text", "by", "place", "said", "branch", "worktree", "channel", "manager"), SHORT)
    await tell(agent, "state", "now", {"state": SHORT, "backend": SHORT, "task": SHORT, "tokens": SHORT})
    asked = {**text, "open": True, "options": [SHORT, "yes"], "who": SHORT}
    await tell(agent, "question", "q1", asked)
    await tell(agent, "question", "q2", {**text, "outcome": SHORT, "choice": SHORT, "class": SHORT})
    await tell(agent, "question", "q<b>3", asked)
    await tell(agent, "alert", "a<b>1", {**text, "event": SHORT})
    await tell(agent, "task", "t<b>1", {**text, "state": SHORT, "members": [SHORT]})
    await tell(agent, "task", "t2", {**text, "state": "working", "members": [SHORT]})
    await tell(agent, "task", "turn-1", {**text, "began": "2026-01-01T00:00:00Z", "outcome": SHORT})
    await tell(agent, "spend", "turn-1", {"tokens": 5, "cost_usd": 0.5, "outcome": SHORT, "at": SHORT})


async def _is_harmless(page: Page) -> None:
    await expect(page.locator("#main")).to_be_visible()
    assert await page.evaluate(NOTHING_OF_IT), page.url


@pytest.mark.parametrize("size", SIZES)
async def test_nothing_that_is_said_in_a_room_does_anything(tabs: Tabs, spoiled: Site, ircd: IRCd, size: str) -> None:
    """Whether it was said before, or comes in by the stream; as a nick the server does not even take it."""
    page = await tabs.enter(spoiled, "ori", size, "/rooms/%23general")
    for attempt in ATTEMPTS:
        await expect(page.locator("#messages .text").get_by_text(attempt, exact=True)).to_have_count(1)
    await expect(page.locator("#topic")).to_have_text(SHORT)
    async with registered(ircd.port, "spark-late") as late:
        await late.join("#general")
        for attempt in ATTEMPTS:
            late.send(f"PRIVMSG #general :{size} {attempt}")
            await expect(page.locator("#messages .text").get_by_text(f"{size} {attempt}", exact=True)).to_have_count(1)
    await _is_harmless(page)


async def test_nothing_that_agents_say_of_themselves_does_anything(tabs: Tabs, spoiled: Site) -> None:
    """A question, its options, a task, an alert: each is shown as it was written, on every page that shows it."""
    page = await tabs.enter(spoiled, "ori")
    for place in PLACES:
        await page.goto(spoiled.url + place)
        await _is_harmless(page)
    await page.goto(f"{spoiled.url}/questions")
    await expect(page.locator("article.question .text").first).to_have_text(SHORT)
    await expect(page.get_by_role("button", name=SHORT).first).to_be_visible()
    await page.goto(f"{spoiled.url}/agents/{IMP}")
    await expect(page.locator("article.agent .task")).to_contain_text(SHORT)


async def test_nothing_on_a_wiki_page_does_anything(tabs: Tabs, spoiled: Site) -> None:
    page = await tabs.enter(spoiled, "ori", DESK, "/wiki/demo/evil")
    await expect(page.locator(".prose h1")).to_have_text(SHORT)
    await expect(page.locator(".prose")).to_contain_text("<script>canary=1</script>")
    await _is_harmless(page)


async def test_the_name_of_a_room_does_nothing(tabs: Tabs, spoiled: Site) -> None:
    page = await tabs.enter(spoiled, "ori", PHONE, "/rooms")
    await page.locator("form").filter(has_text=ROOM).get_by_role("button", name="Join").tap()
    await expect(page.locator("#room h1")).to_have_text(ROOM)
    await expect(page.locator("#text")).to_have_attribute("placeholder", f"Message in {ROOM}")
    await expect(page.locator("#topic")).to_have_text(SHORT)
    await _is_harmless(page)
    await page.goto(f"{spoiled.url}/search?q=canary")
    await expect(page.locator("select option").filter(has_text=ROOM)).to_have_count(1)
    await _is_harmless(page)


async def test_an_attempt_that_came_through_would_be_noticed(tabs: Tabs, spoiled: Site) -> None:
    page = await tabs.enter(spoiled, "ori")
    await page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", SHORT)
    await until(lambda: [each for each in tabs.complaints if "policy: script-src" in each])
    assert not await page.evaluate(NOTHING_OF_IT)
    # That there is no such picture is said a moment later.
    tabs.is_cut_off = True
    tabs.complaints.clear()
