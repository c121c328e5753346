"""A server, and a home for agents."""

from pathlib import Path

import pytest

from tests.clients import surroundings

ircd = surroundings.ircd


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh ~/.culture, and sockets of our own."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("CULTURE_HOME", str(folder))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    return folder
