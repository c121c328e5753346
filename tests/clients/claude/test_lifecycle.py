"""Starting, dying, stopping and taking up again, with the real Claude Code."""

import os
import signal
from pathlib import Path

import pytest

from culture.clients.shared.turn import RunnerSetup
from culture.lib.process.orphans import carrying
from tests.clients.claude.fifo import Fifo, MakeFifo
from tests.clients.lifecycle import goes_on_after_a_kill, stops_while_the_model_hangs
from tests.clients.watched import Launch, Watched
from tests.support.model import Model


@pytest.fixture
def fifo(make_fifo: MakeFifo) -> Fifo:
    return make_fifo()


def lasting(fifo: Fifo) -> str:
    """A command that says that it runs, and lasts."""
    # It says so itself: a process that is just becoming another program has no environment to be known by.
    says = f"open('{fifo.path}', 'w').write(str(os.getpid()))"
    return f"""[[bash exec python3 -c "import os, time; {says}; time.sleep(600)"]]"""


@pytest.mark.requirement("O35")
async def test_nothing_stands_between_us_and_the_program(claude: Watched, setup: RunnerSetup) -> None:
    """The SDK for Python starts it: no wrapper in between, and no other language's runtime."""
    [program] = carrying(setup.environment["CULTURE_TOKEN"])
    assert program == claude.program()
    assert int((Path("/proc") / str(program) / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
    assert (Path("/proc") / str(program) / "exe").readlink().name == "claude"


@pytest.mark.requirement("G07", "G19", "O31")
async def test_killed_in_a_turn_it_says_so_and_goes_on_with_what_it_knew(launch: Launch, model: Model) -> None:
    await goes_on_after_a_kill(launch, model)


@pytest.mark.fault("E6")
async def test_a_command_does_not_outlive_a_killed_agent(claude: Watched, fifo: Fifo) -> None:
    await claude.runner.send_prompt(lasting(fifo))
    command = int(await fifo.read())
    os.kill(claude.program(), signal.SIGKILL)
    assert await claude.exited() == -signal.SIGKILL
    assert command in claude.processes()
    await claude.runner.stop()
    assert claude.processes() == {}


@pytest.mark.requirement("G04")
@pytest.mark.fault("E6")
async def test_nothing_survives_a_stop_in_a_turn(claude: Watched, fifo: Fifo) -> None:
    await claude.runner.send_prompt(lasting(fifo))
    assert int(await fifo.read()) in claude.processes()
    await claude.runner.stop()
    assert claude.processes() == {}
    assert await claude.exited() == 0
    assert not claude.runner.is_running()


@pytest.mark.fault("E6")
async def test_nothing_survives_a_stop_that_was_left_in_the_background(claude: Watched, fifo: Fifo) -> None:
    detached = (
        f"setsid sh -c 'echo $$ > {fifo.path}; exec python3 -c \"import time; time.sleep(600)\"' > /dev/null 2>&1 &"
    )
    await claude.runner.send_prompt(f"[[bash {detached}]] [[say left it]]")
    process = int(await fifo.read())
    assert (await claude.next_turn()).text == "left it"
    assert process in claude.processes()
    await claude.runner.stop()
    assert claude.processes() == {}


async def test_a_model_that_hangs_does_not_hold_up_a_stop(claude: Watched, model: Model) -> None:
    await stops_while_the_model_hangs(claude, model)


@pytest.mark.requirement("G19")
@pytest.mark.parametrize("gone", ["0b5c1f0e-7d3a-4c1e-9f63-5d0f6a1c2b3d", "no-session-at-all"])
async def test_a_session_that_is_gone_is_replaced_and_the_agent_knows(
    launch: Launch, model: Model, gone: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = launch(resume=gone)
    await agent.runner.start("[[say fresh]]")
    assert (await agent.next_turn()).text == "fresh"
    assert agent.runner.session_id not in (None, gone)
    assert f"session {gone} is gone" in str(model.journal.requests[-1].body["system"])
    assert f"session {gone} is gone" in caplog.text
