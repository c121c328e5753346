"""``culture config``: checks the configuration files."""

from pathlib import Path

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.secret_input import is_open_to_others
from culture.config import paths
from culture.config.errors import ConfigError, Key, Problem
from culture.config.load import Loaded, load_agents, load_server
from culture.config.model import ServerConfig
from culture.config.provenance import has_secrets
from culture.config.values import Settings
from culture.protocol.vocabulary import Exit

group = typer.Typer(help="Check the configuration files.", no_args_is_help=True)


@group.callback()
def root() -> None:
    """Check the configuration files."""


@group.command()
@open_to_agents
def check() -> None:
    """Check culture.yaml and agents.yaml, and print what is wrong in them.

    The exit code is 78 when something is wrong.
    """
    faults = 0
    for file, load in ((paths.server_file(), load_server), (paths.agents_file(), load_agents)):
        try:
            loaded = load()
            check_skills(loaded)
        except ConfigError as error:
            faults += len(error.problems)
            typer.echo(error, err=True)
        else:
            typer.echo(f"{file}: {'no errors' if file.exists() else 'does not exist, defaults are used'}")
            if has_secrets(loaded) and is_open_to_others(file):
                typer.echo(
                    f"{file}: other users of this machine can read the secrets in it: `chmod 600 {file}`", err=True
                )
    if faults:
        raise typer.Exit(Exit.WRONG_CONFIGURATION)


def check_skills(loaded: Loaded[Settings]) -> None:
    """Raise ConfigError if a server's configuration names a skill that is missing or invalid."""
    if isinstance(loaded.config, ServerConfig):
        from culture.server.skill_host.loader import WrongSkill, wanted  # imports the server

        try:
            list(wanted(loaded.config))
        except WrongSkill as wrong:
            place = next((loaded.sources[key] for key in _around(wrong.key) if key in loaded.sources), "")
            file, _, line = place.rpartition(":")
            problem = Problem(Path(file or paths.server_file()), int(line or 0), wrong.key, wrong.text)
            raise ConfigError([problem]) from wrong


def _around(key: Key) -> list[Key]:
    return [key[:length] for length in range(len(key), 0, -1)]
