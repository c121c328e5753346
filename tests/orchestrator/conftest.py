"""A project under git, as a person would have it."""

import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.support.servers import serving

Run = Callable[..., str]


def git_in(folder: Path, *arguments: str) -> str:
    """What git prints, as the person at the keyboard."""
    who = ["-c", "user.name=ori", "-c", "user.email=ori@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit on main."""
    folder = tmp_path / "project"
    folder.mkdir()
    git_in(folder, "init", "--quiet")
    (folder / "README.md").write_text("# demo\n")
    (folder / ".gitignore").write_text("*.log\n")
    git_in(folder, "add", ".")
    git_in(folder, "commit", "--quiet", "-m", "the beginning")
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh ~/.culture, and sockets of our own."""
    folder, runtime = tmp_path / "home", tmp_path / "run"
    folder.mkdir(mode=0o700)
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("CULTURE_HOME", str(folder))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    return folder


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    """A server called spark."""
    async with serving(tmp_path / "server") as running:
        yield running
