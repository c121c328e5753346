"""What an agent's configuration makes of Claude Code."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.backends import backend, runner_class
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.instructions import instructions
from culture.clients.shared.turn import RunnerSetup
from tests.clients.watched import Launch
from tests.support.model import Model

pytest.importorskip("claude_agent_sdk", reason="the extra culture[claude] is not installed")

from culture.clients.claude.agent_runner import AgentRunner, ClaudeRunner
from culture.clients.claude.options import effort, options


def made(setup: RunnerSetup, **changes: Any) -> Any:
    changed = replace(setup, **changes)
    return options(changed, environment=changed.environment, hooks={}, stderr=lambda _line: None)


@pytest.fixture(autouse=True)
def ordinary_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


def test_the_backend_names_the_runner() -> None:
    assert runner_class(backend("claude")) is ClaudeRunner is AgentRunner


@pytest.mark.requirement("F05", "G13")
def test_the_default_is_opus_with_medium_thinking_that_asks_nobody(setup: RunnerSetup) -> None:
    chosen = made(setup, model=backend("claude").default_model)
    assert (chosen.model, chosen.effort) == ("claude-opus-4-6", "medium")
    assert made(setup, model=None).model is None, "the program's own model, as `model: default` says"
    assert chosen.permission_mode == "bypassPermissions"
    assert chosen.setting_sources == ["user", "project", "local"]
    assert chosen.cwd == setup.directory
    assert chosen.env["CULTURE_NICK"] == "spark-claude"


@pytest.mark.parametrize(("thinking", "level"), [("low", "low"), ("ultrathink", "max"), ("off", None)])
def test_how_hard_it_thinks(thinking: str, level: str | None) -> None:
    assert effort(thinking) == level


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"thinking": "hard"}, "thinking: 'hard' is none of low, medium"),
        ({"options": {"permission_mode": "yolo"}}, "permission_mode: 'yolo' is none of"),
        ({"options": {"allowed_tools": "Bash"}}, "allowed_tools: 'Bash' is no list"),
        ({"options": {"mcp_servers": ["wiki"]}}, "mcp_servers: expected a mapping"),
    ],
)
def test_a_wrong_configuration_is_named(setup: RunnerSetup, changes: Mapping[str, Any], text: str) -> None:
    with pytest.raises(WrongConfiguration, match=text):
        made(setup, **changes)


def test_a_directory_that_is_not_there_is_named(setup: RunnerSetup) -> None:
    with pytest.raises(WrongConfiguration, match="nowhere is no directory"):
        made(setup, directory=setup.directory / "nowhere")


def test_root_is_told_what_to_do(setup: RunnerSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("IS_SANDBOX", raising=False)
    with pytest.raises(WrongConfiguration, match=r"as a normal user, or set permission_mode: dontAsk .* allowed_tools"):
        made(setup)
    careful = made(setup, options={"permission_mode": "dontAsk", "allowed_tools": ["Bash"]})
    assert (careful.permission_mode, careful.allowed_tools) == ("dontAsk", ["Bash"])


async def test_only_the_tools_that_are_allowed_are_used(
    launch: Launch, model: Model, setup: RunnerSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IS_SANDBOX", raising=False)
    agent = launch(options={"permission_mode": "dontAsk", "allowed_tools": ["Bash(touch:*)"]})
    await agent.runner.start()
    await agent.turn("[[bash touch allowed]] [[bash rm -f allowed]] [[say done]]")
    assert (setup.directory / "allowed").exists()


def test_mcp_servers_reach_the_sdk_as_they_are_written(setup: RunnerSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the command line, where anybody can read it, no secret is filled in."""
    monkeypatch.setenv("WIKI_TOKEN", "sesame")
    servers = {
        "dev-wiki": {"type": "http", "url": "http://127.0.0.1:8809/mcp", "headers": {"X-Token": "${WIKI_TOKEN}"}},
        "older": {"type": "sse", "url": "https://example.org/sse", "headers": {}},
        "own": {"command": "culture", "args": ("bridge", "stdio"), "env": {"IRC_NICK": "x"}},
    }
    assert made(setup, options={"mcp_servers": servers}).mcp_servers == {
        **servers,
        "own": {"type": "stdio", "command": "culture", "args": ["bridge", "stdio"], "env": {"IRC_NICK": "x"}},
    }
    assert made(setup).mcp_servers == {}


@pytest.mark.requirement("O04")
def test_its_instructions_are_appended_to_the_preset_of_claude_code(setup: RunnerSetup, tmp_path: Path) -> None:
    own = tmp_path / "role.md"
    own.write_text("You are Ramona, a manager.\n", encoding="utf-8")
    prompt = made(setup, instructions=instructions("spark-ramona", own)).system_prompt
    assert (prompt["type"], prompt["preset"]) == ("preset", "claude_code")
    assert prompt["append"].startswith("# You are spark-ramona\n")
    assert "\n\nYou are Ramona, a manager.\n" in prompt["append"]
