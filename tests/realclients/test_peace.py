"""Who is away or does not want to hear an agent is left in peace, and loses nothing by it."""

from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.realclients.asking import BEE, asking_agent
from tests.realclients.people import GENERAL, Pair
from tests.support.client import registered

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients" / "people.md"
IGNORE = ("/ignore spark-iris", "/ignore -pattern spark-iris *")


@pytest.mark.fault("J4")
async def test_who_is_away_is_known_to_be_and_the_question_waits_for_them(pair: Pair, ircd: IRCd, home: Path) -> None:
    wendy, iris = pair
    async with asking_agent(home, ircd.port) as daemon:
        await iris.type("/part #general")
        await wendy.shows("spark-iris .* has left #general", GENERAL)
        wendy.type("/away lunch", GENERAL)
        await wendy.shows("You have been marked as being away")
        # The agent can know it; what it writes to her is answered by the server, and starts nothing.
        assert [each["away"] for each in await daemon.service.who("spark-wendy")] == ["away"]
        await daemon.service.send("spark-wendy", "Are you there?")
        await wendy.shows(r"^spark-bee Are you there\?$", BEE)
        async with registered(ircd.port, "spark-ori") as ori:
            ori.send(f"PRIVMSG {BEE} :delete the old branches")
            await wendy.shows(r"\[QUESTION\] Delete the 47 branches\?$", GENERAL)
        assert [each.id for each in daemon.questions.open] == ["q1"]
        assert daemon.inbox.counts() == (0, 0)
        wendy.type("/away", GENERAL)
        await wendy.shows("You are no longer marked as being away")
        wendy.type(f"@{BEE} yes", GENERAL)
        await wendy.shows("They said yes, so it is done.", GENERAL)


@pytest.mark.fault("J4")
async def test_an_agent_that_is_ignored_in_irssi_shows_nowhere(pair: Pair, ircd: IRCd, home: Path) -> None:
    wendy, iris = pair
    assert all(f"`{line}`" in PAGE.read_text(encoding="utf-8") for line in IGNORE)
    async with asking_agent(home, ircd.port) as daemon:
        await iris.shows("spark-bee .*has joined #general")
        for line in IGNORE:
            await iris.type(line.replace("spark-iris", BEE))
            await iris.shows("Ignoring")
        await daemon.service.send(GENERAL, "@spark-iris look here")
        await daemon.service.send("spark-iris", "and here")
        await wendy.shows("@spark-iris look here", GENERAL)
        wendy.type("did you see that?", GENERAL)
        await iris.shows("<@spark-wendy> did you see that\\?")
        assert iris.count("look here|and here|mentioned you") == 0
        await iris.type(f"/unignore {BEE}")
        await iris.shows("Unignored")
        await daemon.service.send(GENERAL, "here again")
        await iris.shows("spark-bee> here again")
