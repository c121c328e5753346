"""A person takes longer to answer than the real Claude Code waits for a command in its shell."""

from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.clients.claude.rooms import working
from tests.clients.patience import answers_late
from tests.clients.shared.test_unfinished_work import complete, completed
from tests.support.model import Model

SECONDS = 4.0
"""Claude Code moves a command to its background after so long here; it waits for 120 s unless told otherwise."""


@pytest.mark.requirement("H08")
async def test_the_answer_is_a_prompt_of_its_own_and_no_news_of_a_command(
    ircd: IRCd, home: Path, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person answers when a call that waited would be in the background; the proof `patience` has its own times."""
    monkeypatch.setenv("BASH_DEFAULT_TIMEOUT_MS", f"{1000 * SECONDS:.0f}")
    async with working(ircd, home, ask_bound=1) as (daemon, ori):
        await answers_late(daemon, ori, model, later=SECONDS + 0.5)
        # "I wait for a word" completed nothing, the answer did.
        assert (await complete(ori)).startswith("deploy")
        await ori.sync()
        assert len(completed(ori)) == 1
    assert not any("<task-notification>" in each.prompt for each in model.journal.requests)
