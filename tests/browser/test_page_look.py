"""How the page looks: it fits a phone and a desk, a finger hits what is to be hit, and light and dark can be read."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from culture.server.ircd import IRCd
from culture.wiki.pages import Pages
from tests.browser.facts import IMP, imp, tell
from tests.browser.tabs import PHONE, Tabs, press
from tests.support.client import registered
from tests.support.web import Site

pytestmark = pytest.mark.asyncio(loop_scope="module")
_LOOKING = Path(__file__).with_name("looking.js").read_text(encoding="utf-8")
_LONG = "a sentence that goes on and on, with averyverylongwordthatnobodywouldeverwriteexceptaprogramofcourse in it"
_PLACES = (
    "/today",
    "/rooms",
    "/rooms/%23general",
    "/search?q=sentence",
    "/agents",
    f"/agents/{IMP}",
    "/questions",
    "/alerts",
    "/mesh",
    "/team",
    "/spend",
    "/digest",
    "/wiki/demo",
    "/account",
    "/nowhere",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def full(home: Path, ircd: IRCd, culture_page: Site) -> AsyncIterator[Site]:
    """A page with something of everything, some of it long."""
    Pages.create(home / "wiki" / "demo")
    async with registered(ircd.port, "spark-guest") as guest, imp(ircd.port) as agent:
        await guest.join("#general")
        guest.send(f"TOPIC #general :{_LONG}")
        guest.send(f"PRIVMSG #general :@spark-ori {_LONG}")
        await guest.sync()
        used = {"tokens": 1_900_000, "cost-usd": 8.5, "budget-usd": 10, "context-pct": 85}
        await tell(agent, "state", "now", {"state": "asking", "backend": "scripted", "task": _LONG, **used})
        await tell(agent, "question", "q1", {"open": True, "text": _LONG, "options": ["yes", _LONG[:40]], "who": "all"})
        await tell(agent, "question", "q2", {"text": _LONG, "outcome": "ANSWERED", "choice": "yes", "by": "spark-ada"})
        for event in ("agent_spiraling", "agent_error", "agent_question"):
            await tell(agent, "alert", event, {"event": event, "text": _LONG})
        for stage in ("working", "done", "failed"):
            await tell(agent, "task", stage, {"state": stage, "text": _LONG, "branch": _LONG[32:70], "manager": IMP})
        await tell(agent, "spend", "turn-1", {"tokens": 1_900_000, "cost_usd": 8.5})
        yield culture_page


async def _flaws(page: Page) -> list[str]:
    found = [f"wide: {each}" for each in await page.evaluate("tooWide()")]
    found += [f"small: {each}" for each in await page.evaluate("hardToHit()")]
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found += [f"{scheme}: {each}" for each in await page.evaluate("hardToRead()")]
    await page.set_viewport_size({"width": 1280, "height": 800})
    found += [f"wide at a desk: {each}" for each in await page.evaluate("tooWide()")]
    await page.set_viewport_size({"width": 390, "height": 844})
    return found


async def test_every_page_fits_and_can_be_read_in_light_and_dark(tabs: Tabs, full: Site) -> None:
    page = await tabs.open(PHONE, reduced_motion="reduce")
    await page.context.add_init_script(_LOOKING)
    await page.goto(f"{full.url}/login")
    flaws = {"/login": await _flaws(page)}
    page = await tabs.enter(full, "ori", PHONE, reduced_motion="reduce")
    await page.context.add_init_script(_LOOKING)
    for place in _PLACES:
        await page.goto(full.url + place)
        flaws[place] = await _flaws(page)
    tabs.forgive(404)
    assert {place: found for place, found in flaws.items() if found} == {}


async def test_light_and_dark_are_different(tabs: Tabs, full: Site) -> None:
    page = await tabs.enter(full, "ori", PHONE, color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = await page.evaluate(ground)
    await page.emulate_media(color_scheme="dark")
    assert await page.evaluate(ground) != light


async def test_who_is_in_a_room_is_seen_on_a_phone(tabs: Tabs, full: Site) -> None:
    page = await tabs.enter(full, "ori", PHONE)
    await press(page.get_by_role("link", name="People"))
    await press(page.locator("#members").get_by_role("link", name="spark-guest"))
    await expect(page.locator("#room h1")).to_have_text("spark-guest")


async def test_a_phone_may_install_it(tabs: Tabs, full: Site) -> None:
    """What browsers look for: a manifest with a name, a start and icons, and a worker."""
    page = await tabs.enter(full, "ori", PHONE)
    manifest = await page.evaluate("fetch(document.querySelector('link[rel=manifest]').href).then((it) => it.json())")
    assert manifest["display"] == "standalone" and manifest["start_url"] and manifest["name"]
    for icon in manifest["icons"]:
        assert await page.evaluate("address => fetch(address).then((it) => it.status)", icon["src"]) == 200
    await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
