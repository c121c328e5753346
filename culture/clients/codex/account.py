"""Codex's login: the one that it keeps itself, or a key of the environment for as long as it runs."""

import os
from collections.abc import Mapping

from culture.clients.codex.app_server import AppServer
from culture.clients.codex.detect import KEYS, home, to_log_in
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.programs import first_set

# The key of the environment is not written to its folder.
NOT_KEPT = ("-c", 'cli_auth_credentials_store="ephemeral"')


def key(environment: Mapping[str, str]) -> str:
    """The name of the variable whose key is used: when Codex has no login of its own; else empty."""
    return "" if (home(environment) / "auth.json").exists() else first_set(KEYS, environment)


def arguments(setup: Mapping[str, str]) -> tuple[str, ...]:
    """What the app server is started with for the sake of the login."""
    return NOT_KEPT if key({**os.environ, **setup}) else ()


async def log_in(server: AppServer, setup: Mapping[str, str]) -> None:
    """Use the key of the environment if there is need; WrongConfiguration when it is certain that nothing can work."""
    account = await server.request("account/read", {"refreshToken": False})
    if account.get("account") is not None or not account.get("requiresOpenaiAuth"):
        return
    environment = {**os.environ, **setup}
    if name := key(environment):
        await server.request("account/login/start", {"type": "apiKey", "apiKey": environment[name]})
        return
    config = await server.request("config/read", {"includeLayers": False})
    if not (config.get("config") or {}).get("openai_base_url"):
        # A model behind an address of one's own may want no login.
        raise WrongConfiguration(no_login())


def no_login() -> str:
    """That nobody has logged in, and what to do."""
    return f"Codex is not logged in: {to_log_in()} (docs/clients/codex/overview.md)"
