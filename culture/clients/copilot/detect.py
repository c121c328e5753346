"""Detect the Copilot CLI and its GitHub login."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from culture.clients.shared.programs import (
    Found,
    Login,
    first_set,
    home_of,
    installing,
    located,
    package_version,
    shown,
    version_of,
)

PROGRAM = "Copilot CLI"
SDK = "github-copilot-sdk"
TRIED = "1.0.102"
PATH_VARIABLE = "COPILOT_CLI_PATH"
INSTALL = f"npm install -g @github/copilot@{TRIED}"
TO_LOG_IN = (
    "`copilot login` as the user who runs the agent, COPILOT_GITHUB_TOKEN in its daemon's environment, "
    "or a `provider` of one's own in agents.yaml"
)

TOKENS = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
_LOGGED_IN = re.compile(r'"last_?logged_?in_?user"\s*:\s*["{]', re.IGNORECASE)


def found() -> tuple[Found, ...]:
    """The Copilot CLI, with its version and login.

    With a remedy if the CLI or its SDK is missing.
    """
    if package_version(SDK) is None:
        return (Found(PROGRAM, remedy=installing("copilot")),)
    path = program(os.environ.get(PATH_VARIABLE) or "copilot", os.environ)
    if path is None:
        return (Found(PROGRAM, remedy=INSTALL),)
    login, how = known_login(os.environ)
    remedy = TO_LOG_IN if login is Login.MISSING else ""
    return (Found(PROGRAM, version_of(path), login, how, remedy, TRIED),)


def program(name: str, environment: Mapping[str, str]) -> Path | None:
    """Path of the program; the binary itself, not the script that npm installs."""
    path = located(str(Path(name).expanduser()) if "/" in name else name, environment)
    return path and (_behind(path.resolve()) or path)


def known_login(environment: Mapping[str, str]) -> tuple[Login, str]:
    """State of the GitHub login, and the variable or file it comes from."""
    if variable := first_set(TOKENS, environment):
        return Login.READY, variable
    home = home_of(environment)
    config = Path(environment.get("COPILOT_HOME") or home / ".copilot") / "config.json"
    if _LOGGED_IN.search(_text(config)):
        return Login.READY, shown(config, environment)
    if (hosts := home / ".config/gh/hosts.yml").exists():
        return Login.UNKNOWN, shown(hosts, environment)
    return Login.MISSING, ""


def _behind(script: Path) -> Path | None:
    """The binary that npm's start script runs: killing only the script would leave the binary running."""
    if script.suffix != ".js":
        return None
    places = (script.parent.parent, script.parent / "node_modules/@github")
    return next((binary for place in places for binary in sorted(place.glob("copilot-linux*/copilot"))), None)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
