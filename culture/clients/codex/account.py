"""Codex's login: its own, or an API key from the environment for this process."""

import os
from collections.abc import Mapping

from culture.clients.codex.app_server import AppServer
from culture.clients.codex.detect import KEYS, home, to_log_in
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.programs import first_set

# Do not store the key from the environment in Codex's folder.
EPHEMERAL = ("-c", 'cli_auth_credentials_store="ephemeral"')


def key(environment: Mapping[str, str]) -> str:
    """Return the name of the environment variable with Codex's API key.

    The result is "" if Codex has a login of its own, or no such variable is set.
    """
    return "" if (home(environment) / "auth.json").exists() else first_set(KEYS, environment)


def arguments(setup: Mapping[str, str]) -> tuple[str, ...]:
    """Return the app server's command line arguments for the login.

    They keep an API key from the environment out of Codex's files. ``setup``: further environment variables.
    """
    return EPHEMERAL if key({**os.environ, **setup}) else ()


async def log_in(server: AppServer, setup: Mapping[str, str]) -> None:
    """Log in to Codex with the API key from the environment, if needed.

    ``server``: Codex's process; ``setup``: further environment variables. ``WrongConfiguration`` if there is no
    login.
    """
    account = await server.request("account/read", {"refreshToken": False})
    if account.get("account") is not None or not account.get("requiresOpenaiAuth"):
        return
    environment = {**os.environ, **setup}
    if name := key(environment):
        await server.request("account/login/start", {"type": "apiKey", "apiKey": environment[name]})
        return
    config = await server.request("config/read", {"includeLayers": False})
    if not (config.get("config") or {}).get("openai_base_url"):
        # A model at a configured base URL may need no login.
        raise WrongConfiguration(no_login())


def no_login() -> str:
    """Return the error text for a missing login; it says how to log in."""
    return f"Codex is not logged in: {to_log_in()} (docs/clients/codex/overview.md)"
