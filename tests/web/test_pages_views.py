"""The other pages: today, alerts, spend, team, mesh, wiki and digest."""

from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from culture.transport import Address, ClientIdentity
from culture.web.ledger_client import LedgerClient
from culture.web.mesh_model import MeshModel
from culture.web.views.mesh import draw_mesh
from culture.wiki.pages import Pages, folder_of
from tests.federation.meshes import linked
from tests.support.waiting import until
from tests.support.web import Site
from tests.web.saying import AGENT, agent, put, shows

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
PAGES = (
    "/today",
    "/agents",
    "/questions",
    "/alerts",
    "/spend",
    "/spend?days=30&in=tokens",
    "/team",
    "/mesh",
    "/digest",
)


def _ago(**span: float) -> str:
    return (datetime.now(UTC) - timedelta(**span)).isoformat()


async def test_a_new_server_has_all_pages_and_says_what_to_type(site: Site) -> None:
    ori = await site.browser().come_in("ori")
    for path in (*PAGES, "/wiki"):
        page = await ori.get(path)
        assert page.status_code == 200, path
        assert " style=" not in page.text and "onclick" not in page.text
    assert "culture up" in (await ori.get("/agents")).text
    assert "culture mesh invite" in (await ori.get("/mesh")).text


async def test_what_agents_say_is_text_on_every_page(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with agent(ircd) as claude:
        await put(claude, "state", "now", {"state": EVIL, "task": EVIL, "backend": EVIL, "since": EVIL, "tokens": EVIL})
        await put(claude, "question", "q1", {"open": True, "text": EVIL, "place": EVIL, "options": [EVIL], "who": EVIL})
        await put(claude, "question", "q2", {"open": False, "outcome": EVIL, "by": EVIL, "choice": EVIL, "class": EVIL})
        await put(claude, "alert", "a-1", {"event": EVIL, "text": EVIL})
        await put(claude, "spend", "turn-1", {"tokens": 5, "cost_usd": 1e300, "ended": EVIL, "outcome": EVIL})
        await put(
            claude, "task", "t1", {"state": EVIL, "text": EVIL, "manager": EVIL, "channel": EVIL, "members": [EVIL]}
        )
        await put(claude, "task", "turn-1", {"began": EVIL, "text": EVIL, "place": EVIL, "by": EVIL, "outcome": EVIL})
        await shows(ori, "/team", "alert(1)")
        for path in (*PAGES, f"/agents/{AGENT}", f"/questions/{AGENT}/q1", f"/questions/{AGENT}/q2"):
            page = (await ori.get(path)).text
            assert "<script>alert" not in page and "<img src=x" not in page, path


async def test_today_says_what_needs_somebody(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with agent(ircd) as claude:
        await put(claude, "state", "now", {"state": "idle"})
        await shows(ori, "/today", "All is well", AGENT)
        await put(claude, "alert", "agent_complete-1", {"event": "agent_complete", "text": "the notes are written"})
        await put(claude, "alert", "agent_error-2", {"event": "agent_error", "text": "it crashed"})
        page = await shows(ori, "/today", "Attention needed", "it crashed")
        assert "the notes are written" not in page
        page = await shows(ori, "/alerts", "it crashed", "the notes are written")
        assert "the notes are written" not in (await ori.get("/alerts?gravity=error")).text


async def test_spend_is_drawn_by_day_and_agent(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with agent(ircd) as claude:
        for number, days in enumerate((0, 1, 1, 20)):
            turn = {"tokens": 1500, "cost_usd": 1.25, "ended": _ago(days=days), "outcome": "DONE"}
            await put(claude, "spend", f"turn-{number}", turn)
        page = await shows(ori, "/spend", "<b>$1.25</b>", "<b>$3.75</b>", AGENT)
        assert f"Cost per day ({datetime.now().astimezone().tzname()}, as budgets count)" in unescape(page)
        assert page.count('<rect class="c0"') == 2 and f"{AGENT}: $2.50</title>" in page
        assert "<b>$5.00</b>" in (await ori.get("/spend?days=30")).text
        assert f"{AGENT}: 3.0k</title>" in (await ori.get("/spend?in=tokens")).text
        await put(claude, "state", "now", {"state": "idle"})
        assert "$1.25, 1.5k tokens, 1 turn" in (await ori.get("/digest?since=1h")).text


async def test_the_board_of_a_team_shows_tasks_by_stage(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with agent(ircd) as claude:
        told = {
            "text": "serve files",
            "manager": "spark-mo",
            "members": ["spark-mo", "spark-jo"],
            "channel": "#work-e2",
        }
        more = {"branch": "team/e2", "worktree": "demo-e2", "shifts": 1, "cost_usd": 0.5, "tokens": 100}
        await put(claude, "task", "e2", {"state": "waiting", **told, **more})
        page = await shows(ori, "/team", "serve files")
        waiting = page.partition("<h2>waiting")[2].partition("<h2>done")[0]
        for words in ("e2", "spark-mo", "with spark-jo<", "team/e2", "demo-e2", "shift 2, $0.50", "/rooms/%23work-e2"):
            assert words in waiting, words


async def test_the_mesh_is_drawn_as_its_servers_tell_it_and_changes_in_a_split(tmp_path: Path) -> None:
    async with linked(tmp_path, ("alfa", "bravo"), [("alfa", "bravo")]) as servers:
        news: list[str] = []
        ledger = LedgerClient(
            Address("127.0.0.1", servers["alfa"].port), ClientIdentity("alfa-web"), news.extend, every=0.05
        )
        model = MeshModel(ledger)
        await ledger.start()
        try:
            [edge] = await until(lambda: [each for each in draw_mesh(model.mesh()).edges if each.label.endswith("ms")])
            assert (edge.link.ends, edge.state) == (("alfa", "bravo"), "linked")
            assert [node.is_here for node in draw_mesh(model.mesh(), model.server).nodes] == [True, False]
            news.clear()
            await servers.cut("alfa", "bravo")
            await until(lambda: [each.label for each in draw_mesh(model.mesh()).edges] == ["down"])
            assert "link" in news and all(node.is_alone for node in draw_mesh(model.mesh()).nodes)
            servers.heal("alfa", "bravo")
            await until(lambda: model.mesh().links[0].state == "linked")
        finally:
            await ledger.stop()


async def test_the_wiki_is_read_with_its_history(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    wiki = Pages.create(folder_of("demo"))
    text = f"# Plan\n\nsee `home` and [the state](/sprint-state.md), not [this](nowhere)\n\n{EVIL}\n"
    first = wiki.write("plans/e2", text, "", AGENT, "the first plan")
    wiki.write("plans/e2", f"{text}\nmore\n", first.revision, "spark-ori", "a second thought")
    wiki.write("sprint-state", "# State", "", AGENT)
    ori = await site.browser().come_in("ori")
    assert (await ori.get("/wiki")).headers["location"] == "/wiki/demo"
    assert 'href="/wiki/demo/plans/e2"' in (await ori.get("/wiki/demo")).text
    page = (await ori.get("/wiki/demo/plans/e2")).text
    assert '<a href="/wiki/demo/home"><code>home</code></a>' in page
    assert '<a href="/wiki/demo/sprint-state">the state</a>' in page and 'class="missing"' in page
    assert "a second thought" in page and "<script>alert" not in page and "<img" not in page.partition("<main")[2]
    old = (await ori.get(f"/wiki/demo/plans/e2?revision={first.revision}")).text
    assert "You are viewing revision" in old and "<p>more</p>" not in old
    assert "plans/e2" in (await ori.get("/wiki/demo?q=plan")).text
    for path in ("/wiki/other", "/wiki/demo/nothing", "/wiki/demo/%2e%2e/secret", "/wiki/..%2fdemo/home", "/wiki/Demo"):
        assert (await ori.get(path)).status_code == 404, path
