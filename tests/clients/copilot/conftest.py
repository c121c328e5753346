"""The real Copilot CLI, in a home of its own, against a scripted model."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from culture.cli.skills import install
from culture.clients.shared.turn import RunnerSetup
from culture.lib.process.orphans import new_token
from tests.clients import surroundings
from tests.clients.surroundings import alone, fresh_home
from tests.clients.watched import Launch, Watched, launching
from tests.support.model import Model

model, ircd = surroundings.model, surroundings.ircd

AGENTS = Path(sys.prefix) / "agents"
PROGRAM = AGENTS / "core/node_modules/.bin/copilot"


def provided(model: Model, **changes: object) -> dict[str, Any]:
    """The options of an agent whose model is the scripted one."""
    return {"provider": {"base_url": f"{model.url}/v1", "api_key_env": "PROVIDER_KEY", **changes}}


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's own but the program."""
    pytest.importorskip("copilot", reason="the extra culture[copilot] is not installed")
    if not PROGRAM.exists():
        pytest.skip("not installed: the Copilot CLI (make agents)")
    alone(tmp_path / "home", monkeypatch)
    monkeypatch.setenv("PATH", f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}")
    # It unpacks 230 MB of itself into every new one.
    monkeypatch.setenv("XDG_CACHE_HOME", str(AGENTS / "cache"))
    monkeypatch.setenv("PROVIDER_KEY", "dummy")


@pytest.fixture
def setup(model: Model, tmp_path: Path) -> RunnerSetup:
    """An agent called spark-copilot in a folder of its own."""
    directory = tmp_path / "work"
    directory.mkdir()
    variables = {"CULTURE_NICK": "spark-copilot", "CULTURE_TOKEN": new_token()}
    return RunnerSetup("spark-copilot", directory, variables, model="gpt-5", options=provided(model))


@pytest.fixture
async def launch(environment: None, setup: RunnerSetup) -> AsyncIterator[Launch]:
    """``launch(thinking="high")``: a runner that is stopped with the test, and not yet started."""
    from culture.clients.copilot.agent_runner import CopilotRunner

    async with launching(CopilotRunner, setup) as launch:
        yield launch


@pytest.fixture
async def copilot(launch: Launch) -> Watched:
    """A running agent."""
    agent = launch()
    await agent.runner.start()
    return agent


@pytest.fixture
def home(environment: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh ~/.culture and sockets of our own; the agent's own home has the skill."""
    folder = fresh_home(tmp_path, monkeypatch)
    install("copilot", tmp_path / "home")
    return folder
