"""Agents and teams are added with a sandbox: by an option, or by the answer to one question."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from culture.cli.agents import agents_yaml
from culture.cli.agents.agents_yaml import SandboxKind, choose_sandbox
from culture.cli.agents.select_agents import load
from culture.cli.commands import assembled
from culture.config import paths
from culture.config.load import load_team
from tests.clients.shared.sandbox.conftest import needs_bwrap


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh ~/.culture, and a project."""
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path / "culture"))
    project = tmp_path / "shop"
    project.mkdir()
    who = ("-c", "user.name=o", "-c", "user.email=o@example.org")
    for words in (("init", "-q", "-b", "main"), (*who, "commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", *words], cwd=project, check=True)
    return project


def typed(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(assembled(words[0]), words)
    return done.exit_code, done.output


@needs_bwrap
def test_option_is_written_down(home: Path) -> None:
    assert typed("agents", "add", "bee", "--directory", str(home), "--sandbox", "bwrap")[0] == 0
    assert typed("agents", "add", "fly", "--directory", str(home), "--sandbox", "none")[0] == 0
    assert typed("agents", "add", "ant", "--directory", str(home))[0] == 0
    kinds = {agent.nick.partition("-")[2]: agent.sandbox.model_fields_set for agent in load().agents}
    assert [agent.sandbox.kind for agent in load().agents] == ["bwrap", "none", "none"]
    assert kinds["ant"] == set(), "without the option, and without a terminal, nothing is written"
    assert typed("team", "init", str(home), "--slug", "shop", "--sandbox", "bwrap")[0] == 0
    assert load_team(paths.team_dir("shop") / "team.yaml").config.sandbox.kind == "bwrap"


def test_option_is_refused_where_it_cannot_be(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents_yaml, "obstacle", lambda: "bubblewrap is not installed")
    for words in (("agents", "add", "bee", "--directory", str(home)), ("team", "init", str(home))):
        code, said = typed(*words, "--sandbox", "bwrap")
        assert code == 1
        assert "bubblewrap is not installed" in said
    assert not paths.agents_file().exists()


@needs_bwrap
@pytest.mark.parametrize(("answer", "kind"), [("y", SandboxKind.BWRAP), ("n", None), ("", None)])
def test_person_at_a_terminal_is_asked_once(
    answer: str, kind: SandboxKind | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    with open(theirs, encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert choose_sandbox(None) is kind
        assert choose_sandbox(SandboxKind.NONE) is SandboxKind.NONE
        monkeypatch.setattr(agents_yaml.shutil, "which", lambda program: None)
        assert choose_sandbox(None) is None, "nobody is asked where it is not installed"
    os.close(ours)
    assert "neither your home folder" in "".join(capsys.readouterr())
