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
    """Return one entry: the Copilot CLI found, its version, and whether it is logged in.

    If the CLI or its SDK is missing, the entry says how to install it.
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
    """Return the path of the program ``name``; of the binary, not the script that npm installs.

    None if the program is not found.
    """
    path = located(str(Path(name).expanduser()) if "/" in name else name, environment)
    return path and (_behind(path.resolve()) or path)


def known_login(environment: Mapping[str, str]) -> tuple[Login, str]:
    """Return the state of the GitHub login, and the variable or file that it comes from."""
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
    """Return the binary that npm's start script runs, or None if ``script`` is no such script.

    Killing only the script would leave the binary running.
    """
    if script.suffix != ".js":
        return None
    places = (script.parent.parent, script.parent / "node_modules/@github")
    return next((binary for place in places for binary in sorted(place.glob("copilot-linux*/copilot"))), None)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
