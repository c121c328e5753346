"""The real programs that speak ACP: where they are, and what makes them talk to the scripted model alone."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from culture.clients.shared.programs import located
from tests.clients.claude.conftest import variables as for_claude
from tests.clients.surroundings import alone

AGENTS = Path(sys.prefix) / "agents"
MODEL = "scripted-model"


@dataclass(frozen=True, slots=True)
class Program:
    """One program; ``prepare`` writes into its home what it needs and gives its variables."""

    name: str
    folder: str
    arguments: tuple[str, ...]
    prepare: Callable[[Path, str], Mapping[str, str]]

    @property
    def command(self) -> list[str]:
        """What starts it."""
        return [str(AGENTS / self.folder / "node_modules" / ".bin" / self.name), *self.arguments]


def enter(program: Program, home: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's own in our environment, which the program inherits; skip where it is not installed."""
    if located(program.command[0]) is None or located("node") is None:
        pytest.skip(f"not installed: {program.name} (make agents moreagents)")
    alone(home, monkeypatch)
    # Where a program would look for a registry of packages, nobody is.
    variables = {"npm_config_registry": "http://127.0.0.1:9/", "DO_NOT_TRACK": "1"}
    for name, value in {**variables, **program.prepare(home, url)}.items():
        monkeypatch.setenv(name, value)


def _opencode(_home: Path, url: str) -> Mapping[str, str]:
    limit = {"context": 200_000, "output": 8_000}
    prices = {"input": 3, "output": 15}
    models = {name: {"name": name, "limit": limit, "cost": prices} for name in (MODEL, "scripted-other")}
    settings = {
        "provider": {
            "scripted": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "scripted",
                "options": {"baseURL": f"{url}/v1", "apiKey": "dummy"},
                "models": models,
            }
        },
        "enabled_providers": ["scripted"],
        "model": f"scripted/{MODEL}",
        "small_model": f"scripted/{MODEL}",
        "share": "disabled",
    }
    switches = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
        **{f"OPENCODE_DISABLE_{each}": "1" for each in switches},
    }


def _cline(home: Path, url: str) -> Mapping[str, str]:
    name = "openai-compatible"
    provider = {"provider": name, "apiKey": "dummy", "model": MODEL, "baseUrl": f"{url}/v1"}
    known = {"settings": provider, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    settings = {"version": 1, "lastUsedProvider": name, "modes": {}, "providers": {name: known}}
    _write(home / ".cline" / "data" / "settings" / "providers.json", settings)
    return {"CLINE_API_KEY": "dummy", "CLINE_PROVIDER": name}


def _gemini(home: Path, url: str) -> Mapping[str, str]:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}
    _write(home / ".gemini" / "settings.json", settings)
    return {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}


def _qwen(home: Path, url: str) -> Mapping[str, str]:
    settings = {"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": False}}
    _write(home / ".qwen" / "settings.json", settings)
    return {"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": MODEL}


def _claude(_home: Path, url: str) -> Mapping[str, str]:
    return for_claude(url)


def _codex(home: Path, url: str) -> Mapping[str, str]:
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(CODEX_CONFIG.format(url=url), encoding="utf-8")
    return {"CODEX_HOME": str(folder), "SCRIPTED_KEY": "dummy"}


def _write(file: Path, settings: Mapping[str, object]) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(settings), encoding="utf-8")


# Its own model is refused elsewhere than at its makers', and what looks for news of itself is off.
CODEX_CONFIG = """
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[features]
plugins = false
apps = false
plugin_discovery_prefetch = false
"""

OPENCODE = Program("opencode", "core", ("acp",), _opencode)
CLINE = Program("cline", "more", ("--acp",), _cline)
GEMINI = Program("gemini", "more", ("--acp", "-m", "gemini-2.5-pro"), _gemini)
QWEN = Program("qwen", "more", ("--acp",), _qwen)
CLAUDE = Program("claude-agent-acp", "more", (), _claude)
CODEX = Program("codex-acp", "more", (), _codex)
