"""What an agent's configuration makes of Copilot, and what is found of it on a machine."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from culture.cli.skills import skill_files
from culture.clients.copilot import BACKEND
from culture.clients.copilot.detect import found, known_login, program
from culture.clients.shared.backends import backend, runner_class, supervisor_class
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.programs import Login
from culture.clients.shared.turn import RunnerSetup
from culture.config.agents import BACKEND_FIELDS
from tests.support.model import Model

pytest.importorskip("copilot", reason="the extra culture[copilot] is not installed")

from culture.clients.copilot.agent_runner import AgentRunner, CopilotRunner
from culture.clients.copilot.options import CopilotOptions, asks, read
from culture.clients.copilot.supervisor import CopilotSupervisor
from culture.clients.shared.supervisor import SupervisorSetup

AT = {"base_url": "http://127.0.0.1:1/v1"}


@pytest.mark.requirement("G17")
def test_the_backend_has_runner_supervisor_and_skill() -> None:
    assert runner_class(backend("copilot")) is CopilotRunner is AgentRunner
    assert supervisor_class(backend("copilot")) is CopilotSupervisor
    assert BACKEND.fields == BACKEND_FIELDS["copilot"]
    assert skill_files(BACKEND).keys() == {"SKILL.md"}


def made(folder: Path, thinking: str = "medium", model: str | None = "gpt-5", **options: object) -> CopilotOptions:
    asks(options)
    return read("spark-copilot", folder, options, {"CULTURE_NICK": "spark-copilot"}, model=model, thinking=thinking)


def test_the_default_is_copilot_s_own_and_asks_nobody(environment: None, tmp_path: Path) -> None:
    chosen = made(tmp_path, model=None)
    assert (chosen.model, chosen.effort, chosen.provider) == (None, None, None)
    assert not asks({})
    assert chosen.environment["CULTURE_NICK"] == "spark-copilot"
    assert chosen.environment["PROVIDER_KEY"] == "dummy"


def test_a_provider_of_one_s_own(environment: None, tmp_path: Path) -> None:
    given = {"type": "azure", "wire_api": "responses", "api_version": "2024-10-21", "max_prompt_tokens": 9000}
    chosen = made(tmp_path, "ultrathink", provider={**AT, **given, "api_key_env": "PROVIDER_KEY"})
    assert chosen.provider == {
        "type": "azure",
        "wire_api": "responses",
        "base_url": AT["base_url"],
        "api_key": "dummy",
        "azure": {"api_version": "2024-10-21"},
        "max_prompt_tokens": 9000,
    }
    assert chosen.effort == "max"
    assert "PROVIDER_KEY" not in chosen.environment
    assert made(tmp_path, provider=AT).provider == {"type": "openai", **AT}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"thinking": "hard"}, "thinking: 'hard' is none of low, medium"),
        ({"permission_mode": "yolo"}, "permission_mode: 'yolo' is none of allow, ask"),
        ({"copilot_path": "/nowhere/copilot"}, "the Copilot CLI is not there (/nowhere/copilot): npm install"),
        ({"copilot_path": 7}, "copilot_path: 7 is no path"),
        ({"provider": "ollama"}, "provider: expected a mapping"),
        ({"provider": {}}, "provider.base_url: say where"),
        ({"provider": {**AT, "type": "llama"}}, "provider.type: 'llama' is none of openai, azure, anthropic"),
        ({"provider": {**AT, "api_key": "sk-1"}}, "provider.api_key: a key does not belong here"),
        ({"provider": {**AT, "api_key_env": "NO_SUCH"}}, "the daemon's environment has no NO_SUCH"),
        ({"provider": {**AT, "base_url": 5}}, "provider.base_url: 5 is no text"),
        ({"provider": {**AT, "max_prompt_tokens": True}}, "is no number of tokens"),
        ({"provider": {**AT, "url": "x"}}, "provider.url: unknown key; there are type, wire_api, base_url"),
        ({"provider": AT, "model": None}, "say which of its models to use"),
    ],
    ids=lambda case: "" if isinstance(case, dict) else None,
)
def test_a_wrong_configuration_is_named(
    environment: None, tmp_path: Path, changes: Mapping[str, Any], text: str
) -> None:
    with pytest.raises(WrongConfiguration) as wrong:
        made(tmp_path, **changes)
    assert text in str(wrong.value) and "sk-1" not in str(wrong.value)


def test_what_cannot_work_is_told_when_a_runner_is_made(environment: None, setup: RunnerSetup) -> None:
    with pytest.raises(WrongConfiguration, match="nowhere is no directory"):
        CopilotRunner(replace(setup, directory=setup.directory / "nowhere"))
    with pytest.raises(WrongConfiguration, match="permission_mode"):
        CopilotRunner(replace(setup, options={"permission_mode": "dontAsk"}))


def test_a_supervisor_of_another_backend_s_agent_minds_its_options_not(environment: None, tmp_path: Path) -> None:
    CopilotSupervisor(SupervisorSetup("spark-claude", tmp_path, options={"permission_mode": "dontAsk"}))


async def test_without_a_login_it_does_not_begin(environment: None, setup: RunnerSetup, model: Model) -> None:
    runner = CopilotRunner(replace(setup, options={}))
    with pytest.raises(WrongConfiguration, match="Copilot is not logged in: `copilot login`"):
        await runner.start()
    assert not runner.is_running()
    assert model.journal.paths == []


def test_what_is_found_of_it(environment: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (there,) = found()
    assert (there.version, there.login) == ("1.0.102", Login.MISSING)
    assert "copilot login" in there.remedy and not there.untried
    assert program("copilot", os.environ).name == "copilot"  # type: ignore[union-attr]
    assert program("copilot", os.environ).suffix == ""  # type: ignore[union-attr]
    monkeypatch.setenv("PATH", "/usr/bin")
    (there,) = found()
    assert (there.version, there.remedy) == (None, "npm install -g @github/copilot@1.0.102")


def test_where_a_login_comes_from(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert known_login(home) == (Login.MISSING, "")
    hosts = tmp_path / ".config/gh/hosts.yml"
    hosts.parent.mkdir(parents=True)
    hosts.write_text("github.com:\n")
    assert known_login(home) == (Login.UNKNOWN, "~/.config/gh/hosts.yml")
    config = tmp_path / ".copilot/config.json"
    config.parent.mkdir()
    config.write_text('// Managed by the program.\n{"lastLoggedInUser": {"host": "https://github.com", "login": "x"}}')
    assert known_login(home) == (Login.READY, "~/.copilot/config.json")
    assert known_login({**home, "GH_TOKEN": "gho_x"}) == (Login.READY, "GH_TOKEN")
