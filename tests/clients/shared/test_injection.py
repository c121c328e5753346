"""Texts of others reach an agent's model as texts: nothing imitates the frame, nothing is obeyed, nothing is hidden."""

from pathlib import Path

from culture.server.ircd import IRCd
from tests.support.attacked import attacked
from tests.support.injection import OWN, forms, sample


async def test_no_string_of_ours_gets_past_the_frame_by_any_way(ircd: IRCd, home: Path) -> None:
    async with attacked(home, ircd.port) as attack:
        await attack.topics(sample(OWN, 4))
        await attack.rooms(OWN)
        await attack.answers(sample(OWN, 4))
        await attack.nicks(sample(OWN, 4))
        await attack.channels(sample(OWN, 5))
        await attack.hooks(OWN)
        await attack.pages(sample(OWN, 4), "culture")
        attack.prompts_are_clean()
        attack.nothing_was_obeyed()
    assert attack.found == []
    assert attack.figures["messages in prompts"] > 8 * len(OWN)
    assert attack.figures["hooks in prompts of the judge"] == sum(len(forms(text)) for text in OWN)
