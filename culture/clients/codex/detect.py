"""Detect the Codex program and its login."""

import json
import os
import shlex
import tomllib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from culture.clients.shared.programs import (
    Found,
    Login,
    first_set,
    home_of,
    installing,
    package_version,
    read_mapping,
    shown,
)

PROGRAM = "Codex"
PACKAGE = "openai-codex-cli-bin"
BUNDLE = "codex_cli_bin"
TRIED = "0.163"

KEYS = ("CODEX_API_KEY", "OPENAI_API_KEY")
OWN_PROVIDER = "openai"
# With one of these settings the login may be elsewhere, or not be needed.
ELSEWHERE = {"cli_auth_credentials_store", "profile", "openai_base_url"}


def found() -> tuple[Found, ...]:
    """Return one entry: the Codex program, its version, and whether it is logged in.

    If its Python package is missing, the entry says how to install it.
    """
    version = package_version(PACKAGE)
    if version is None:
        return (Found(PROGRAM, remedy=installing("codex")),)
    login, how = known_login(os.environ)
    return (Found(PROGRAM, version, login, how, to_log_in() if login is Login.MISSING else "", TRIED),)


def to_log_in() -> str:
    """Return a text with the steps to log in to Codex."""
    package = find_spec(BUNDLE)
    program = Path(package.origin).parent / "bin" / "codex" if package and package.origin else "codex"
    typed = shlex.quote(str(program))
    return f"`{typed} login` as the user who runs the agent, or CODEX_API_KEY in its daemon's environment"


def home(environment: Mapping[str, str]) -> Path:
    """Return the path of the folder of Codex's settings and login."""
    return Path(environment.get("CODEX_HOME") or home_of(environment) / ".codex")


def known_login(environment: Mapping[str, str]) -> tuple[Login, str]:
    """Return the login state of the configured provider, and where the login was found."""
    settings = read_mapping(home(environment) / "config.toml", tomllib.loads)
    provider = settings.get("model_provider", OWN_PROVIDER)
    if provider != OWN_PROVIDER:
        return _login_of(_part(_part(settings, "model_providers"), provider), environment)
    file = home(environment) / "auth.json"
    if any(read_mapping(file, json.loads).get(key) for key in ("OPENAI_API_KEY", "tokens", "personal_access_token")):
        return Login.READY, shown(file, environment)
    if file.exists():
        return Login.UNKNOWN, ""
    if variable := first_set(KEYS, environment):
        return Login.READY, variable
    return (Login.MISSING if ELSEWHERE.isdisjoint(settings) else Login.UNKNOWN), ""


def _login_of(provider: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[Login, str]:
    variable = provider.get("env_key")
    if not isinstance(variable, str):
        return Login.UNKNOWN, ""
    return (Login.READY, variable) if environment.get(variable) else (Login.UNKNOWN, "")


def _part(settings: Mapping[str, Any], name: object) -> Mapping[str, Any]:
    part = settings.get(str(name))
    return part if isinstance(part, dict) else {}
