"""The real Claude Code, in a home of its own, against a scripted model."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from culture.cli.skills import install
from culture.clients.shared.turn import RunnerSetup
from culture.lib.process.orphans import new_token
from tests.clients import surroundings
from tests.clients.claude.fifo import Fifo, MakeFifo
from tests.clients.surroundings import alone, fresh_home
from tests.clients.watched import Launch, Watched, launching
from tests.support.model import Model

model, ircd = surroundings.model, surroundings.ircd


def variables(url: str) -> dict[str, str]:
    """What makes Claude Code talk to the model there, and to nobody else."""
    switches = (
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
        "DISABLE_AUTOUPDATER",
        # Claude Code refuses to run without asking as root, unless it is told that it is contained.
        *(["IS_SANDBOX"] if os.getuid() == 0 else []),
    )
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        # None lives long enough to be worth optimising: compiling its hot code takes a tenth of its processor time.
        "BUN_JSC_useDFGJIT": "0",
        **dict.fromkeys(switches, "1"),
    }


@pytest.fixture
def environment(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's own."""
    pytest.importorskip("claude_agent_sdk", reason="the extra culture[claude] is not installed")
    alone(tmp_path / "home", monkeypatch)
    for name, value in variables(model.url).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def setup(tmp_path: Path) -> RunnerSetup:
    """An agent called spark-claude in a folder of its own."""
    directory = tmp_path / "work"
    directory.mkdir()
    variables = {"CULTURE_NICK": "spark-claude", "CULTURE_TOKEN": new_token()}
    return RunnerSetup("spark-claude", directory, environment=variables, model="claude-opus-4-6")


@pytest.fixture
async def launch(environment: None, setup: RunnerSetup) -> AsyncIterator[Launch]:
    """``launch(thinking="high")``: a runner that is stopped with the test, and not yet started."""
    from culture.clients.claude.agent_runner import ClaudeRunner

    async with launching(ClaudeRunner, setup) as launch:
        yield launch


@pytest.fixture
async def claude(launch: Launch) -> Watched:
    """A running agent."""
    agent = launch()
    await agent.runner.start()
    return agent


@pytest.fixture
def make_fifo(tmp_path: Path) -> Iterator[MakeFifo]:
    """``make_fifo()``: a pipe between a command of the agent and the test."""
    with ExitStack() as stack:
        numbers = count(1)

        def make() -> Fifo:
            fifo = Fifo(tmp_path / f"fifo{next(numbers)}")
            stack.callback(fifo.close)
            return fifo

        yield make


@pytest.fixture
def home(environment: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh ~/.culture and sockets of our own; the agent's own home has the skill and what its owner tells it."""
    folder = fresh_home(tmp_path, monkeypatch)
    install("claude", tmp_path / "home")
    return folder
