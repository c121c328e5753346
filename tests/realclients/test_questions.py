"""weechat and irssi do the whole question flow: see it, ask back, be misunderstood, answer, and be told."""

from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.realclients.asking import asking_agent
from tests.realclients.people import GENERAL, Pair


@pytest.mark.fault("J1")
async def test_a_question_is_seen_and_answered_in_weechat_and_irssi(pair: Pair, ircd: IRCd, home: Path) -> None:
    wendy, iris = pair
    async with asking_agent(home, ircd.port):
        wendy.type("@spark-bee delete the old branches", GENERAL)
        for shows in (lambda text: wendy.shows(text, GENERAL), iris.shows):
            await shows(r"spark-bee>?\s+\[QUESTION\] Delete the 47 branches\?$")
            await shows("Waiting for response. Reply with: @spark-bee yes/no/abort$")
        # In weechat an answer that could mean this or that is asked back, to that person alone.
        wendy.type("@spark-bee yes but only the merged ones", GENERAL)
        await wendy.shows("spark-bee.*I cannot tell what that means for q1")
        await iris.type("@spark-bee yes, go ahead")
        await iris.shows('spark-bee.*q1 is answered: "yes"')
        await wendy.shows("They said yes, go ahead, so it is done.", GENERAL)
        await iris.type("/msg spark-bee no q1")
        await iris.shows("q1 was already answered by spark-iris at .*Nothing changes")
        # An operator's word goes above it, also when it comes late.
        wendy.type("/msg spark-bee no q1", GENERAL)
        await wendy.shows('q1 was answered by spark-iris with "yes".*Your word goes above it')
        await iris.type("@spark-bee delete the old branches")
        await iris.shows(r"\[QUESTION\] Delete the 47 branches\?$")
        wendy.type("/msg spark-bee no q2", GENERAL)
        await wendy.shows('q2 is answered: "no"')
        await iris.shows("They said .*denied by spark-wendy")
