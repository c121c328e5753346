"""Detect the Claude Code program and its login."""

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from culture.clients.shared.programs import (
    Found,
    Login,
    first_set,
    home_of,
    installing,
    located,
    read_mapping,
    shown,
    version_of,
)

PROGRAM = "Claude Code"
SDK = "claude_agent_sdk"
TRIED = "2.1"

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
# With one of these set, the program uses another provider and that provider's login.
PROVIDERS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
MANAGED = Path("/etc/claude-code/managed-settings.json")
PLUGIN = Path(__file__).with_name("skill")
"""Our skill as a plugin, loaded without an installation under the name ``culture:irc``."""
PLUGIN_MANIFEST = PLUGIN / ".claude-plugin/plugin.json"
SKILL = Path("skills/irc/SKILL.md")
# The program, relative to the folder of the SDK.
BUNDLED = Path("_bundled/claude")


def found() -> tuple[Found, ...]:
    """Return one entry: the Claude Code program, its version, and whether it is logged in.

    If the SDK or the program is missing, the entry says how to install it.
    """
    there = program()
    if there is None:
        return (Found(PROGRAM, remedy=installing("claude")),)
    login, how = known_login(os.environ)
    remedy = to_log_in() if login is Login.MISSING else ""
    return (Found(PROGRAM, _version(there), login, how, remedy, TRIED),)


def to_log_in() -> str:
    """Return a text with the steps to log in to Claude Code."""
    typed = "claude" if located("claude") else shlex.quote(str(program() or "claude"))
    return f"`{typed} /login` as the user who runs the agent, or ANTHROPIC_API_KEY in its daemon's environment"


def program() -> Path | None:
    """Return the path of the program in the SDK, or of the one on PATH; None without the SDK."""
    package = find_spec(SDK)
    if package is None or package.origin is None:
        return None
    bundled = Path(package.origin).parent / BUNDLED
    return bundled if bundled.exists() else located("claude")


def installed_skill(environment: Mapping[str, str], directory: Path) -> Path | None:
    """Return the path of the IRC instructions installed for the user or the project, or None."""
    settings = environment.get("CLAUDE_CONFIG_DIR")
    folders = (Path(settings) if settings else home_of(environment) / ".claude", directory / ".claude")
    return next((folder / SKILL for folder in folders if (folder / SKILL).exists()), None)


def _version(program: Path) -> str:
    try:
        return program.with_suffix(".version").read_text(encoding="utf-8").split()[0]
    except (OSError, IndexError):
        return version_of(program)


def known_login(environment: Mapping[str, str]) -> tuple[Login, str]:
    """Return the state of Claude Code's login, and the variable or file that it comes from."""
    if variable := first_set(KEYS, environment):
        return Login.READY, variable
    if variable := first_set(PROVIDERS, environment):
        return Login.UNKNOWN, variable
    for file, keys in _files(home_of(environment), environment.get("CLAUDE_CONFIG_DIR")):
        said = read_mapping(file, json.loads)
        if any(said.get(key) for key in keys) or first_set(KEYS + PROVIDERS, _variables(said)):
            return Login.READY, shown(file, environment)
    return Login.MISSING, ""


def _files(home: Path, folder: str | None) -> Iterator[tuple[Path, tuple[str, ...]]]:
    settings = Path(folder) if folder else home / ".claude"
    yield settings / ".credentials.json", ("claudeAiOauth",)
    yield (settings if folder else home) / ".claude.json", ("primaryApiKey",)
    yield settings / "settings.json", ("apiKeyHelper",)
    yield MANAGED, ("apiKeyHelper",)


def _variables(settings: Mapping[str, Any]) -> dict[str, str]:
    variables = settings.get("env")
    return {name: str(value) for name, value in variables.items()} if isinstance(variables, dict) else {}
