"""The real Codex, in a home of its own, against a scripted model."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.cli.skills import install
from culture.clients.shared.turn import RunnerSetup
from culture.lib.process.orphans import new_token
from tests.clients import surroundings
from tests.clients.surroundings import alone, fresh_home
from tests.clients.watched import Launch, Watched, launching
from tests.support.model import Model

model, ircd = surroundings.model, surroundings.ircd

MODEL = "gpt-5.6-sol"
# Without this it looks for plugins, and for news of itself, at its makers'.
QUIET = """
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
plugins = false
apps = false
"""
CONFIG = """
model = "{model}"
openai_base_url = "{url}/v1"
"""


@pytest.fixture
def codex_home(model: Model, tmp_path: Path) -> Path:
    """Where Codex looks for its settings: the provider of its makers, at the scripted model's address, with a key."""
    folder = tmp_path / "home" / ".codex"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(CONFIG.format(model=MODEL, url=model.url) + QUIET)
    (folder / "auth.json").write_text('{"OPENAI_API_KEY": "dummy"}')
    return folder


@pytest.fixture
def environment(codex_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's own."""
    pytest.importorskip("codex_cli_bin", reason="the extra culture[codex] is not installed")
    alone(codex_home.parent, monkeypatch)
    # Should it want to go elsewhere for all that, as with settings that it cannot read: nobody is there.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")


@pytest.fixture
def setup(tmp_path: Path) -> RunnerSetup:
    """An agent called spark-codex in a folder of its own."""
    directory = tmp_path / "work"
    directory.mkdir()
    variables = {"CULTURE_NICK": "spark-codex", "CULTURE_TOKEN": new_token()}
    return RunnerSetup("spark-codex", directory, environment=variables)


@pytest.fixture
async def launch(environment: None, setup: RunnerSetup) -> AsyncIterator[Launch]:
    """``launch(thinking="high")``: a runner that is stopped with the test, and not yet started."""
    from culture.clients.codex.agent_runner import CodexRunner

    async with launching(CodexRunner, setup) as launch:
        yield launch


@pytest.fixture
async def codex(launch: Launch) -> Watched:
    """A running agent."""
    agent = launch()
    await agent.runner.start()
    return agent


@pytest.fixture
def home(environment: None, codex_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh ~/.culture and sockets of our own; the agent's own home has the skill."""
    folder = fresh_home(tmp_path, monkeypatch)
    install("codex", codex_home.parent)
    return folder
