"""The real OpenCode, in a home of its own, against a scripted model."""

from pathlib import Path

import pytest

from culture.cli.skills import install
from tests.clients import surroundings
from tests.clients.surroundings import fresh_home
from tests.support.acpprograms import OPENCODE, enter
from tests.support.model import Model

model, ircd = surroundings.model, surroundings.ircd


@pytest.fixture
def opencode(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What starts OpenCode, with nothing of the machine's own around it."""
    enter(OPENCODE, tmp_path / "home", model.url, monkeypatch)
    return OPENCODE.command


@pytest.fixture
def home(opencode: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh ~/.culture and sockets of our own; the agent's own home has the skill."""
    folder = fresh_home(tmp_path, monkeypatch)
    install("acp", tmp_path / "home")
    return folder
