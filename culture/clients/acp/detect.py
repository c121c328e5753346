"""Detect installed ACP programs and their logins."""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from culture.clients.acp.quirks import DEFAULT_COMMAND, KNOWN
from culture.clients.shared.programs import Found, Login, first_set, home_of, installing, located, shown, version_of

SDK = "acp"


def found() -> tuple[Found, ...]:
    """Return one entry for each known ACP program on PATH, with version and login.

    If none is installed, the only entry says how to install the default program.
    """
    default = DEFAULT_COMMAND[0]
    if find_spec(SDK) is None:
        return (Found(default, remedy=installing("acp")),)
    there = [_found(name, program) for name in KNOWN if (program := located(name)) is not None]
    return tuple(there) or (Found(default, remedy=KNOWN[default].install, tried=KNOWN[default].tried),)


def _found(name: str, program: Path) -> Found:
    login, how = known_login(name, os.environ)
    return Found(name, version_of(program), login, how, tried=KNOWN[name].tried)


def known_login(name: str, environment: Mapping[str, str]) -> tuple[Login, str]:
    """Return the login state of the program ``name``, and where the login was found.

    The state is READY, or UNKNOWN if none was found, as there may be other ways to log in.
    """
    quirks, home = KNOWN[name], home_of(environment)
    if variable := first_set(quirks.keys, environment):
        return Login.READY, variable
    for file in quirks.logins:
        if (home / file).exists():
            return Login.READY, shown(home / file, environment)
    return Login.UNKNOWN, ""
