"""What a real program finds around it: a scripted model, a server, a home of its own, and nothing else."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.support.model import Model, model_server
from tests.support.servers import serving


def alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's own: an agent's variables are added to those of its parent."""
    home.mkdir(parents=True, exist_ok=True)
    for name in os.environ.keys() - {"PATH", "LANG", "PYTEST_CURRENT_TEST"}:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))


def fresh_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh ~/.culture, and sockets of our own."""
    folder, runtime = tmp_path / "culture", tmp_path / "run"
    for each in (folder, runtime):
        each.mkdir(mode=0o700)
    monkeypatch.setenv("CULTURE_HOME", str(folder))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    return folder


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    """The scripted model."""
    async with model_server() as running:
        yield running


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    """A server called spark."""
    async with serving(tmp_path / "server") as running:
        yield running
