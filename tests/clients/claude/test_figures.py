"""What a turn of the real Claude Code cost, and how full its context is."""

import pytest

from culture.clients.shared.turn import CLEAR
from tests.clients.watched import Launch, Watched
from tests.support.model import Model

COUNTING = "/v1/messages/count_tokens"
# Dollars for a million tokens of claude-opus-4-6: read, written.
READ, WRITTEN = 5e-6, 25e-6


async def test_each_turn_has_its_own_cost_also_after_clearing(claude: Watched) -> None:
    first = await claude.turn("[[usage 1000 100 0 0]] [[say one]]")
    second = await claude.turn("[[usage 2000 100 0 0]] [[bash true]] [[say two]]")
    assert first.cost_usd == pytest.approx(1000 * READ + 100 * WRITTEN)
    assert second.cost_usd == pytest.approx(2 * (2000 * READ + 100 * WRITTEN))
    assert (first.tokens, second.tokens) == (1100, 4200)
    assert (await claude.turn(CLEAR)).cost_usd == 0
    turn = await claude.turn("[[usage 500 10 0 0]] [[say three]]")
    assert turn.cost_usd == pytest.approx(500 * READ + 10 * WRITTEN)


async def test_a_session_taken_up_again_is_not_paid_twice(launch: Launch) -> None:
    agent = launch()
    await agent.runner.start()
    await agent.turn("[[usage 100000 100 0 0]] [[say one]]")
    await agent.runner.stop()
    again = launch(resume=agent.runner.session_id)
    await again.runner.start()
    turn = await again.turn("[[usage 1000 100 0 0]] [[say two]]")
    assert turn.cost_usd == pytest.approx(1000 * READ + 100 * WRITTEN)


async def test_the_context_is_what_the_last_call_read_and_a_failed_one_leaves_it(claude: Watched, model: Model) -> None:
    turn = await claude.turn("[[usage 10000 0 20000 10000]] [[bash true]] [[say one]]")
    assert turn.context_pct == pytest.approx(20, abs=0.1)
    assert COUNTING not in model.journal.paths
    assert (await claude.turn("[[err 400]]")).context_pct == pytest.approx(20, abs=0.1)


async def test_a_context_that_fills_is_measured_by_where_it_shortens_itself(claude: Watched, model: Model) -> None:
    turn = await claude.turn("[[usage 100 0 119900 0]] [[say one]]")
    assert turn.context_pct == pytest.approx(100 * 120_000 / 167_000, abs=1)
    counted = model.journal.paths.count(COUNTING)
    assert counted
    await claude.turn("[[usage 100 0 119900 0]] [[say two]]")
    assert model.journal.paths.count(COUNTING) == counted


async def test_a_context_that_has_no_more_room_is_full(claude: Watched) -> None:
    too_long = "400 prompt is too long: 210000 tokens > 200000 maximum"
    for trouble, full in (("400", False), ("413 too many images", True), (too_long, True)):
        turn = await claude.turn(f"[[err {trouble}]]")
        assert turn.error, trouble
        assert turn.full == full, trouble


async def test_a_context_that_shortens_itself_is_told(claude: Watched) -> None:
    await claude.turn("[[usage 199500 10 0 0]] [[say a lot]]")
    turn = await claude.turn("[[say short again]]")
    assert turn.compacted and turn.text == "short again"
    assert turn.context_pct is not None and turn.context_pct < 50
