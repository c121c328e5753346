"""Goals of the real Codex, for which it begins turn after turn by itself."""

from pathlib import Path

import pytest

from culture.clients.codex.options import GOALS
from culture.clients.shared.turn import RunnerSetup, Turn
from tests.clients.watched import Launch, Watched
from tests.support.model import Model
from tests.support.waiting import until

GOAL = '[[call create_goal {"objective": "count to three"}]] [[say set]]'


async def test_an_agent_has_no_goals(codex: Watched, model: Model) -> None:
    assert (await codex.turn(GOAL)).text == "set"
    assert "unsupported call: create_goal" in model.journal.requests[-1].results[-1]
    assert (await codex.turn("[[say next]]")).text == "next"
    assert len(model.journal.requests) == 3


@pytest.mark.parametrize("may_work", [True, False])
async def test_a_turn_that_codex_begins_itself_is_metered_and_cut_when_the_agent_may_not_work(
    launch: Launch, setup: RunnerSetup, model: Model, tmp_path: Path, may_work: bool
) -> None:
    agent = launch()
    agent.runner._thread["config"][GOALS] = True
    began: list[bool] = []
    ended: list[Turn] = []

    def begins() -> bool:
        began.append(may_work)
        return may_work

    agent.runner.on_own_turn, agent.runner.on_own_end = begins, ended.append
    await agent.runner.start()
    assert (await agent.turn(GOAL)).tokens == 220
    await until(lambda: bool(ended))
    if may_work:
        assert (ended[0].text, ended[0].tokens, ended[0].interrupted) == ("set", 110, False)
        await until(lambda: len(ended) > 2)
    else:
        assert ended[0].interrupted
    assert (await agent.turn("[[say mine]]")).text == "mine"
