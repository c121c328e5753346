"""What a turn of the real Codex used, how full its context is, and what its provider gives."""

import time
from collections.abc import Sequence

import pytest

from culture.clients.shared.budget import Quota
from culture.clients.shared.turn import CLEAR, COMPACT
from tests.clients.watched import Launch, Watched
from tests.support.model import Model

# What Codex knows of the model: the tokens of its context that it uses.
WINDOW = 258_400


async def test_each_turn_has_its_own_tokens(codex: Watched) -> None:
    first = await codex.turn("[[usage 1000 100 0 0]] [[say one]]")
    second = await codex.turn("[[usage 2000 100 500 0]] [[bash true]] [[say two]]")
    assert (first.tokens, second.tokens) == (1100, 5200)
    assert first.cost_usd == 0
    assert (await codex.turn(CLEAR)).tokens == 0
    assert (await codex.turn("[[usage 500 10 0 0]] [[say three]]")).tokens == 510


async def test_a_thread_taken_up_again_is_not_counted_twice(launch: Launch) -> None:
    agent = launch()
    await agent.runner.start()
    await agent.turn("[[usage 100000 100 0 0]] [[say one]]")
    await agent.runner.stop()
    again = launch(resume=agent.runner.session_id)
    await again.runner.start()
    assert (await again.turn("[[usage 1000 100 0 0]] [[say two]]")).tokens == 1100


async def test_the_context_is_what_the_last_call_read(codex: Watched) -> None:
    turn = await codex.turn("[[usage 10000 0 20000 10000]] [[bash true]] [[say one]]")
    assert turn.context_pct == pytest.approx(100 * 40_000 / WINDOW, abs=0.1)
    assert (await codex.turn("[[err 400]]")).context_pct == turn.context_pct
    compacted = await codex.turn(COMPACT)
    assert compacted.context_pct is not None and compacted.context_pct < turn.context_pct
    await codex.turn(CLEAR)
    assert (await codex.turn("[[err 400]]")).context_pct is None


async def test_a_context_that_shortens_itself_is_told(codex: Watched) -> None:
    await codex.turn(f"[[usage {WINDOW} 10 0 0]] [[say a lot]]")
    turn = await codex.turn("[[say short again]]")
    assert turn.compacted and turn.text == "short again"
    assert turn.context_pct is not None and turn.context_pct < 50


@pytest.mark.parametrize(
    ("trouble", "full"),
    [
        ("[[err 400 context_length_exceeded It is too long]]", True),
        ("[[say half]] [[err 400 context_length_exceeded It is too long]]", True),
        ("[[err 400]]", False),
    ],
    ids=["at once", "in the stream", "something else"],
)
async def test_a_context_that_has_no_more_room_is_full(codex: Watched, trouble: str, full: bool) -> None:
    turn = await codex.turn(trouble)
    assert turn.error
    assert turn.full == full


async def test_a_limit_of_the_subscription_says_until_when(codex: Watched, model: Model) -> None:
    ends, told = int(time.time()) + 3600, list[Quota]()

    def hear(quotas: Sequence[Quota]) -> None:
        told[:] = quotas

    codex.runner.on_quotas = hear
    model.headers = {
        "x-codex-primary-used-percent": "100",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(ends),
        "x-codex-secondary-used-percent": "40",
        "x-codex-secondary-window-minutes": "10080",
        "x-codex-secondary-reset-at": str(ends + 3600),
    }
    turn = await codex.turn("[[err 429 usage_limit_reached You are out of it]]")
    assert turn.error and turn.limited_until == ends
    assert told == [Quota("5_hour", 1.0, ends), Quota("7_day", 0.4, ends + 3600)]
    assert (await codex.turn("[[err 429]]")).limited_until is None
