"""Agents in a browser: a question is answered with a finger, an agent is paused, and what it costs is seen."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import expect

from culture.clients.shared.daemon import AgentDaemon
from culture.server.ircd import IRCd
from tests.browser.tabs import SIZES, Tabs, go, line, press, say, shows
from tests.support.agents import agents_yaml, playbook, running
from tests.support.web import Site

pytestmark = pytest.mark.asyncio(loop_scope="module")
BEE = "spark-bee"
_CLIENT = "python3 -P -m culture.clients.shared.skill.irc_client"
_RULES: list[dict[str, Any]] = [
    {
        "when": "> .*sweep the (?P<what>[a-z]+)",
        "steps": [
            {"usage": {"tokens": 12000, "cost_usd": 0.25, "context_pct": 40}},
            {"run": f"{_CLIENT} ask --timeout 60 --options yes/no '#general' 'May I sweep the '{{what}}'?'"},
            {"send": {"to": "#general", "text": "They said {output}, so the {what} is swept."}},
        ],
    },
    {
        "when": "> .*polish the (?P<what>[a-z]+)",
        "steps": [
            {"usage": {"tokens": 12000, "cost_usd": 0.25, "context_pct": 40}},
            {"send": {"to": "#general", "text": "The {what} shines."}},
        ],
    },
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bee(home: Path, ircd: IRCd) -> AsyncIterator[AgentDaemon]:
    """An agent that asks before it sweeps."""
    config = agents_yaml(
        home,
        ircd.port,
        {"nick": BEE, "playbook": playbook(home, _RULES, [{"think": "Well."}]), "budget": {"usd_per_day": 2}},
        rules={"trust": {"humans": "always", "agents": "never"}},
    )
    async with running(config, BEE, patience=30) as daemon:
        yield daemon


@pytest.mark.fault("J1")
@pytest.mark.parametrize("size", SIZES)
async def test_a_question_is_answered_by_tapping(tabs: Tabs, culture_page: Site, bee: AgentDaemon, size: str) -> None:
    """It counts, and the agent goes on; whoever looks at the questions sees it close without loading anything."""
    what = f"{size}s"
    page = await tabs.enter(culture_page, "ori", size)
    watching = await tabs.enter(culture_page, "ada", size, "/questions")
    await say(page, f"@{BEE} sweep the {what}")
    await expect(page.locator("#nav a").filter(has_text="Questions").locator(".badge")).to_have_text("1")
    await go(page, "Questions")
    asked = page.locator("article.question.open").filter(has_text=f"May I sweep the {what}?")
    await expect(asked).to_contain_text("Who may answer: ")
    there = watching.locator("article.question").filter(has_text=f"May I sweep the {what}?")
    await expect(there).to_have_class(re.compile(r"\bopen\b"))
    await press(asked.get_by_role("button", name="yes"))
    await expect(page.locator("#result")).to_contain_text('is answered: "yes"')
    await expect(there).to_contain_text("answered")
    await expect(there).to_contain_text("by spark-ori (human)")
    await expect(page.locator("article.question.open")).to_have_count(0)
    await expect(page.locator("#nav .badge")).to_have_count(0)
    await page.goto(f"{culture_page.url}/rooms/%23general")
    await shows(page, [f"so the {what} is swept."])
    await expect(line(page, f"so the {what} is swept.")).to_contain_text("They said yes")


@pytest.mark.parametrize("size", SIZES)
async def test_an_agent_is_paused_and_seen_paused(tabs: Tabs, culture_page: Site, bee: AgentDaemon, size: str) -> None:
    page = await tabs.enter(culture_page, "ori", size)
    watching = await tabs.enter(culture_page, "ada", size, f"/agents/{BEE}")
    await go(page, "Agents")
    card = page.locator("article.agent").filter(has_text=BEE)
    await expect(card.locator(".state")).to_have_text("idle")
    await press(card.get_by_role("button", name="Pause"))
    await expect(page.locator("#result")).to_contain_text(BEE)
    for shown in (card, watching.locator("article.agent")):
        await expect(shown.locator(".state")).to_have_text("paused")
    await press(card.get_by_role("button", name="Resume"))
    for shown in (card, watching.locator("article.agent")):
        await expect(shown.locator(".state")).to_have_text("idle")


@pytest.mark.parametrize("size", SIZES)
async def test_what_agents_cost_is_seen(tabs: Tabs, culture_page: Site, bee: AgentDaemon, size: str) -> None:
    page = await tabs.enter(culture_page, "ori", size)
    await say(page, f"@{BEE} polish the {size}")
    await shows(page, [f"The {size} shines."])
    await go(page, "Agents")
    card = page.locator("article.agent").filter(has_text=BEE)
    await expect(card).to_contain_text(re.compile(r"\$\d\.\d\d / \$2"))
    await go(page, "Spend")
    await expect(page.locator("table tr").filter(has_text=BEE)).to_contain_text("$")
    await expect(page.locator("svg.chart rect").first).to_be_visible()
    await press(page.get_by_role("link", name="Tokens"))
    await expect(page.locator("table tr").filter(has_text=BEE)).to_contain_text("k")


async def test_what_an_agent_tells_one_person_alone_is_seen_in_the_room(
    tabs: Tabs, culture_page: Site, bee: AgentDaemon
) -> None:
    page = await tabs.enter(culture_page, "ori")
    await say(page, f"@{BEE} help")
    await expect(page.locator("#result")).to_contain_text(f"{BEE}, to you: I understand: status, pause")
    await expect(page.locator("#messages li.notice")).to_have_count(0)
