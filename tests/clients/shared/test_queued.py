"""A runner with a queue, whatever its agent does."""

from pathlib import Path

import pytest

from culture.clients.shared.queued import QueuedRunner
from culture.clients.shared.turn import AgentDied, RunnerSetup, Turn


class Stillborn(QueuedRunner):
    """Its process dies when the agent has just answered that it is ready, as seen by whoever watches the process."""

    session_id = None
    closed = False

    async def open(self) -> None:
        await self.died(9)

    async def take_turn(self, prompt: str) -> Turn:
        raise AssertionError("nobody is there to take it")

    async def close(self) -> None:
        self.closed = True


async def test_a_death_that_is_seen_before_the_start_is_over_is_not_overlooked(tmp_path: Path) -> None:
    runner, exits = Stillborn(RunnerSetup("spark-agent", tmp_path)), list[int]()

    async def exited(code: int) -> None:
        exits.append(code)

    runner.on_exit = exited
    with pytest.raises(AgentDied) as death:
        await runner.start()
    assert (death.value.code, runner.is_running(), runner.closed, exits) == (9, False, True, [])
