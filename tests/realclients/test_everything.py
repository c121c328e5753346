"""All that matters can be done in weechat alone: see agents, answer, pause, search, find links."""

from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.realclients.asking import BEE, asking_agent
from tests.realclients.people import GENERAL
from tests.realclients.weechat import weechat
from tests.support.client import registered

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients" / "people.md"
WHEN = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]"
ALIASES = ("/alias add search /quote history search $*", "/alias add urls /quote urls $*")


def test_the_page_has_the_very_lines() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"\n{line}\n" in text for line in ALIASES)


@pytest.mark.requirement("A32")
async def test_a_person_with_weechat_alone_sees_answers_pauses_and_searches(
    ircd: IRCd, home: Path, tmp_path: Path
) -> None:
    address = f"irc://spark-wendy@127.0.0.1:{ircd.port}/#general"
    async with (
        asking_agent(home, ircd.port) as daemon,
        registered(ircd.port, "spark-ori") as ori,
        weechat(tmp_path / "weechat", address) as wendy,
    ):
        await wendy.shows("Channel #general: 2 nicks", GENERAL)
        # Who is an agent, and what it is doing.
        wendy.type("/who #general", GENERAL)
        await wendy.shows(r"spark-bee .* HB")
        wendy.type(f"/whois {BEE}", GENERAL)
        await wendy.shows(r"\[spark-bee\] is a bot")
        await wendy.shows(r"\[spark-bee\] .*idle")
        wendy.type(f"@{BEE} status", GENERAL)
        await wendy.shows("spark-bee.*idle since .* 0 unread")
        # A question, answered.
        wendy.type(f"@{BEE} delete the old branches", GENERAL)
        await wendy.shows(r"\[QUESTION\] Delete the 47 branches\?", GENERAL)
        wendy.type(f"@{BEE} status", GENERAL)
        await wendy.shows('spark-bee.*asking on "delete the old branches"')
        wendy.type(f"@{BEE} yes", GENERAL)
        await wendy.shows('q1 is answered: "yes"')
        await wendy.shows("They said yes, so it is done", GENERAL)
        # Paused, it keeps what is said to it; then it goes on.
        wendy.type(f"@{BEE} pause", GENERAL)
        await wendy.shows("spark-bee.*paused")
        wendy.type(f"@{BEE} count", GENERAL)
        await wendy.shows("spark-bee.*paused.*")
        assert daemon.inbox.counts()[0] == 1
        wendy.type(f"@{BEE} resume", GENERAL)
        await wendy.shows("This is prompt 2.", GENERAL)
        # What was said and shared, by words of one's own.
        for alias in ALIASES:
            wendy.type(alias)
        await ori.join(GENERAL)
        await ori.ask("PRIVMSG #general :the plan is at https://example.org/plan")
        await wendy.shows("the plan is at", GENERAL)
        wendy.type("/search branches done", GENERAL)
        await wendy.shows("--- #general: 0 messages|--- #general: nothing")
        wendy.type("/search branches", GENERAL)
        await wendy.shows(rf"{WHEN} <spark-bee> \[QUESTION\] Delete the 47 branches\?$")
        wendy.type("/urls 5", GENERAL)
        await wendy.shows("<spark-ori> https://example.org/plan")
