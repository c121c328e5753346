"""What a Codex agent is configured with, and what is found of the program."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from culture.clients.codex import BACKEND
from culture.clients.shared.backends import runner_class, supervisor_class
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.programs import Login
from culture.clients.shared.turn import RunnerSetup
from culture.config.agents import BACKEND_FIELDS

pytest.importorskip("codex_cli_bin", reason="the extra culture[codex] is not installed")

from culture.clients.codex import options
from culture.clients.codex.agent_runner import CodexRunner
from culture.clients.codex.answer import called, command_of
from culture.clients.codex.detect import found, known_login


def test_the_backend_names_its_parts() -> None:
    assert runner_class(BACKEND) is CodexRunner
    assert supervisor_class(BACKEND).__name__ == "CodexSupervisor"
    assert BACKEND_FIELDS["codex"] == BACKEND.fields


def test_the_default_asks_nobody_and_may_do_everything(setup: RunnerSetup) -> None:
    wanted = options.thread(setup, {"CULTURE_NICK": "spark-codex", "PATH": "/bin"})
    assert (wanted["approvalPolicy"], wanted["sandbox"]) == ("never", "danger-full-access")
    assert wanted["config"] == {
        "allow_login_shell": False,
        "features.default_mode_request_user_input": True,
        "features.goals": False,
        "shell_environment_policy.set.CULTURE_NICK": "spark-codex",
    }
    assert "model" not in wanted
    assert options.thread(replace(setup, model="gpt-6-sol"), {})["model"] == "gpt-6-sol"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"options": {"approval_policy": "sometimes"}}, "approval_policy: 'sometimes' is none of never, on-request"),
        ({"options": {"sandbox_mode": "full"}}, "sandbox_mode: 'full' is none of danger-full-access"),
        ({"thinking": "hard"}, "thinking: 'hard' is none of none, minimal"),
        ({"directory": Path("/nowhere")}, "directory: /nowhere is no directory"),
    ],
    ids=["approval", "sandbox", "thinking", "directory"],
)
def test_a_wrong_configuration_is_named(setup: RunnerSetup, changes: Mapping[str, Any], text: str) -> None:
    with pytest.raises(WrongConfiguration, match=text):
        CodexRunner(replace(setup, **changes))


@pytest.mark.parametrize(
    ("thinking", "offered", "effort"),
    [
        ("medium", ["low", "medium", "high"], "medium"),
        ("ultrathink", ["low", "medium", "high", "xhigh"], "xhigh"),
        ("off", ["low", "medium"], "low"),
        ("high", [], "high"),
    ],
    ids=["there", "too deep", "not at all", "unknown"],
)
def test_a_model_thinks_as_hard_as_it_can(thinking: str, offered: list[str], effort: str) -> None:
    assert options.fitting(options.effort(thinking), offered) == effort


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/bin/bash -lc 'echo \"a b\"; ls'", 'echo "a b"; ls'),
        ("git status", "git status"),
        ("/usr/bin/zsh -c 'git status'", "git status"),
        ("python3 -c 'git status'", "python3 -c 'git status'"),
        ("/srv/agent/bash -lc 'git status'", "/srv/agent/bash -lc 'git status'"),
        ("/bin/bash -lc 'unfinished", "/bin/bash -lc 'unfinished"),
    ],
    ids=["shell", "bare", "another shell", "no shell", "a shell of its own", "broken"],
)
def test_a_command_is_shown_as_the_agent_wrote_it(line: str, command: str) -> None:
    assert command_of(line) == command


CHANGE = {"path": "a", "diff": "+"}


@pytest.mark.parametrize(
    ("item", "name", "given"),
    [
        ({"type": "mcpToolCall", "server": "wiki", "tool": "read", "arguments": {"a": 1}}, "wiki.read", {"a": 1}),
        ({"type": "webSearch", "query": "marmots", "action": None}, "webSearch", {"query": "marmots", "action": None}),
        ({"type": "fileChange", "changes": [{**CHANGE, "kind": {}}]}, "Edit", {"changes": [CHANGE]}),
    ],
    ids=["mcp", "search", "edit"],
)
def test_a_tool_is_called_what_people_call_it(item: dict[str, Any], name: str, given: dict[str, Any]) -> None:
    assert called({"id": "1", **item}) == {"type": "tool_use", "id": "1", "name": name, "input": given}


def test_a_look_at_a_running_command_is_no_call() -> None:
    assert called({"type": "commandExecution", "id": "1", "command": "ls", "source": "unifiedExecInteraction"}) is None
    assert called({"type": "agentMessage", "id": "1", "text": "hello"}) is None


CUSTOM = 'model_provider = "mine"\n[model_providers.mine]\nenv_key = "MINE_KEY"\n'


@pytest.mark.parametrize(
    ("files", "variables", "login", "how"),
    [
        ({}, {}, Login.MISSING, ""),
        ({}, {"OPENAI_API_KEY": "k"}, Login.READY, "OPENAI_API_KEY"),
        ({"auth.json": json.dumps({"tokens": {"id_token": "x"}})}, {}, Login.READY, "~/.codex/auth.json"),
        ({"auth.json": "{}"}, {}, Login.UNKNOWN, ""),
        ({"config.toml": CUSTOM}, {"MINE_KEY": "k"}, Login.READY, "MINE_KEY"),
        ({"config.toml": CUSTOM}, {"OPENAI_API_KEY": "k"}, Login.UNKNOWN, ""),
        ({"config.toml": 'openai_base_url = "http://127.0.0.1/v1"'}, {}, Login.UNKNOWN, ""),
        ({"config.toml": "= no toml"}, {}, Login.MISSING, ""),
    ],
    ids=["nothing", "key", "subscription", "empty", "own provider", "its key missing", "own address", "broken"],
)
def test_a_login_is_found(
    tmp_path: Path, files: Mapping[str, str], variables: Mapping[str, str], login: Login, how: str
) -> None:
    folder = tmp_path / ".codex"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)
    assert known_login({"HOME": str(tmp_path), **variables}) == (login, how)


def test_the_program_is_found(environment: None) -> None:
    (codex,) = found()
    assert codex.version and not codex.untried
    assert (codex.ready, codex.how, codex.remedy) == (True, "~/.codex/auth.json", "")
