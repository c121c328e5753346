"""Agents and their questions on the page: seen, answered, paused; each with a real daemon."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.cli.agents.agent_login import ensure_account
from culture.clients.shared.daemon import AgentDaemon
from culture.server.ircd import IRCd
from tests.support.agents import agents_yaml, running
from tests.support.client import registered
from tests.support.web import Site
from tests.web.saying import AGENT, agent, put, shows

NICK = "spark-helper"
PART = {"HX-Request": "true"}


@pytest.fixture
async def helper(tmp_path: Path, ircd: IRCd, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AgentDaemon]:
    """A real agent in #general, with an account as every agent has."""
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    ensure_account(NICK, ircd.parts.accounts)
    config = agents_yaml(tmp_path, ircd.port, {"nick": NICK, "budget": {"tokens_per_day": 1000}})
    async with running(config, NICK) as daemon:
        yield daemon


async def test_an_agent_is_seen_with_what_it_does_and_uses(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with agent(ircd) as claude:
        await claude.join_channel("#general")
        await claude.send_privmsg("#general", "the east wing stands")
        used = {"tokens": "12000", "cost-usd": "1.50", "budget-usd": "2", "context-pct": "41", "unread": 3}
        await put(
            claude, "state", "now", {"state": "working", "task": "build the east wing", "backend": "codex", **used}
        )
        await put(claude, "task", "turn-1", {"began": "2026-03-19T10:00:00Z", "ended": None, "text": "the errand"})
        page = await shows(ori, "/agents", "build the east wing", "the east wing stands")
        for words in (
            "working",
            "codex",
            "$1.50",
            "/ $2",
            "12.0k",
            "41 %",
            "3 unread",
            'width="75.0"',
            "Pause",
            "Stand down",
        ):
            assert words in page, words
        assert f'href="/rooms/{AGENT}"' in page
        assert "the errand" in (await ori.get(f"/agents/{AGENT}")).text
        assert "build the east wing" in (await ori.get("/agents?state=working")).text
        assert "build the east wing" not in (await ori.get("/agents?state=idle")).text
        assert (await ori.get("/agents/spark-nobody")).status_code == 404
    await shows(ori, "/agents", "working, offline")


async def test_an_agent_is_paused_and_goes_on_by_a_tap(site: Site, helper: AgentDaemon) -> None:
    ori = await site.browser().come_in("ori")
    await shows(ori, "/agents", NICK, "/ 1.0k", "Pause")
    told = await ori.post(f"/agents/{NICK}/say", PART, word="pause")
    assert f"<b>{NICK}</b>: paused: messages are kept until you say resume." in told.text
    await shows(ori, "/agents", '"state paused"', "Resume")
    told = await ori.post(f"/agents/{NICK}/say", word="resume")
    assert "going on." in told.text and f'href="/agents/{NICK}"' in told.text
    await shows(ori, "/agents", '"state idle"')
    assert (await ori.post(f"/agents/{NICK}/say", word="clear out your desk")).status_code == 400
    assert (await ori.post("/agents/spark-nobody/say", word="pause")).status_code == 400


async def test_standing_down_and_held_are_states_of_an_idle_agent(site: Site, helper: AgentDaemon, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    await shows(ori, "/agents", '"state idle"')
    await ori.post(f"/agents/{NICK}/say", PART, word="stand down")
    for page in ("/agents", "/today", f"/agents/{NICK}"):
        await shows(ori, page, '"state standing-down">standing down')
    assert NICK in (await ori.get("/agents?state=standing down")).text
    await ori.post(f"/agents/{NICK}/say", PART, word="go on")
    await shows(ori, "/agents", '"state idle"')
    async with registered(ircd.port, "spark-eve") as eve:
        await eve.join("#general")
        eve.send(f"PRIVMSG #general :@{NICK} do my work")
        for page in ("/agents", "/today"):
            await shows(ori, page, '"state held">held')


async def test_held_messages_are_shown_and_released_by_a_tap(site: Site, ircd: IRCd, helper: AgentDaemon) -> None:
    ori = await site.browser().come_in("ori")
    async with registered(ircd.port, "spark-eve") as eve:
        await eve.ask(f"PRIVMSG {NICK} :the cellar door is open")
        page = await shows(ori, "/agents", "1 held message", "1 from <b>spark-eve</b>", "sender not vouched for")
        assert "cellar" not in page and "1 held" in (await ori.get("/today")).text
        for wrong in ({"word": "go on", "sender": "spark-ada"}, {"word": "pause", "sender": "spark-eve"}):
            assert (await ori.post(f"/agents/{NICK}/say", **wrong)).status_code == 400
        told = await ori.post(f"/agents/{NICK}/say", PART, word="go on", sender="spark-eve")
        assert "going on with 1 held message" in told.text
        await eve.expect("PRIVMSG", "spark-eve")


async def test_a_question_is_answered_by_a_tap_once_and_everybody_sees_it(
    site: Site, ircd: IRCd, helper: AgentDaemon
) -> None:
    ori, ada = [await site.browser().come_in(account) for account in ("ori", "ada")]
    asking = asyncio.create_task(helper.questions.ask("#general", "Delete <b>47</b> branches?", 600, ("yes", "no")))
    address = f"/questions/{NICK}/q1"
    page = await shows(ori, "/questions", "Delete &lt;b&gt;47&lt;/b&gt; branches?", "in #general", "9 min left")
    assert '<b class="badge">1</b>' in page and f'href="{address}"' in page
    assert all(f'<button name="answer" value="{word}"' in page for word in ("yes", "no", "abort"))
    assert "Who may answer:" in page
    assert "Delete" in (await ori.get(address)).text and "1 open question" in (await ori.get("/today")).text
    told = await ori.post(address, PART, answer="yes")
    assert 'class="result"' in told.text and "q1 is answered: &#34;yes&#34;." in told.text
    answer = await asking
    assert (answer.by, answer.human_confirmed) == ("spark-ori", True)
    late = await ada.post(address, PART, answer="no")
    assert 'class="result not"' in late.text and "already answered by spark-ori" in late.text
    page = await shows(ada, "/questions", "No open questions.", "by spark-ori (human)")
    assert "<b>yes</b>" in page and 'class="badge"' not in page
    # What it says of the answer the server has looked up: whose message it is, and how they were logged in.
    page = await shows(ada, "/questions", ">verified<", "logged in as ori (behalf)")
    assert answer.msgid is not None and f'<span class="mono">{answer.msgid}</span>' in page


async def test_the_page_shows_what_a_permission_is_for(site: Site, ircd: IRCd, helper: AgentDaemon) -> None:
    ori = await site.browser().come_in("ori")
    command = "\n".join(["  indented <b>", *(f"echo {number} {'x' * 60}" for number in range(60)), "rm -rf /"])
    asking = asyncio.create_task(helper.leave.permit("Bash", {"command": command}))
    page = await shows(ori, "/questions", '<pre class="detail"', "  indented &lt;b&gt;\necho 0 xxx", "more lines")
    assert f"<code>culture questions {NICK} q1</code>" in page
    await ori.post(f"/questions/{NICK}/q1", PART, answer="no")
    assert not (await asking).allowed


@pytest.mark.parametrize(
    ("named", "verdict"),
    [("spark.1.1", ">NOT verified<"), ("thor.1.1", ">unverified<"), (None, ">unverified<")],
)
async def test_an_answer_that_an_agent_made_up_is_shown_as_not_verified(
    site: Site, ircd: IRCd, named: str | None, verdict: str
) -> None:
    ori = await site.browser().come_in("ori")
    forged = {"open": False, "outcome": "ANSWERED", "by": "spark-ori", "class": "human", "human_confirmed": True}
    async with agent(ircd) as claude:
        await put(claude, "question", "q7", {**forged, "answer": named, "verified": True, "verified_why": "trust me"})
        page = await shows(ori, "/questions", "by spark-ori (human)", verdict)
        assert ">verified<" not in page and "trust me" not in page


async def test_a_connection_without_a_login_makes_no_card(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with registered(ircd.port, "spark-eve", "message-tags") as eve, agent(ircd) as claude:
        await eve.ask("MODE spark-eve +B")
        for what in ("state now", "question q1", "alert crashed-1"):
            await eve.ask(f'@+agentirc.dev/fact={{"state":"working","open":true,"text":"forged"}} LEDGER PUT {what}')
        await put(claude, "state", "now", {"state": "working"})
        await shows(ori, "/agents", AGENT)
        for path in ("/agents", "/questions", "/alerts", "/today"):
            page = (await ori.get(path)).text
            assert "forged" not in page and ("spark-eve" not in page or path == "/today")


async def test_what_was_asked_in_private_is_shown_without_its_words(
    site: Site, ircd: IRCd, helper: AgentDaemon
) -> None:
    ori, ada = [await site.browser().come_in(account) for account in ("ori", "ada")]
    asking = asyncio.create_task(helper.questions.ask("spark-ori", "is the vault open?", 600, ()))
    page = await shows(ada, "/questions", "in private", "text hidden")
    assert f'<a href="/rooms/{NICK}">your conversation with {NICK}</a>' in page
    assert "vault" not in page
    assert "is answered" in (await ori.post(f"/questions/{NICK}/q1", PART, answer="it is")).text
    assert (await asking).text == "it is"


async def test_a_question_that_nobody_asked_has_no_page_and_takes_no_answer(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with agent(ircd) as claude:
        await put(claude, "question", "q1 yes".replace(" ", "-"), {"open": True})
        await shows(ori, "/questions", "q1-yes")
        assert (await ori.get(f"/questions/{AGENT}/q9")).status_code == 404
        assert (await ori.post(f"/questions/{AGENT}/q9", answer="yes")).status_code == 404
        assert (await ori.post(f"/questions/{AGENT}/q1-yes", answer="yes")).status_code == 404
    async with registered(ircd.port, "spark-bob") as bob:
        assert not [line for line in await bob.sync() if line.verb == "PRIVMSG"]
