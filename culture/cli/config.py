"""``culture config``: the configuration files."""

import typer

from culture.config import paths
from culture.config.errors import ConfigError
from culture.config.load import load_agents, load_server
from culture.protocol.vocabulary import Exit

group = typer.Typer(help="Look at the configuration files.", no_args_is_help=True)


@group.callback()
def root() -> None:
    """Look at the configuration files."""


@group.command()
def check() -> None:
    """Say what is wrong with culture.yaml and agents.yaml.

    The exit code is 78 when something is.
    """
    faults = 0
    for file, load in ((paths.server_file(), load_server), (paths.agents_file(), load_agents)):
        try:
            load()
        except ConfigError as error:
            faults += len(error.problems)
            typer.echo(error, err=True)
        else:
            typer.echo(f"{file}: {'fine' if file.exists() else 'not there, defaults hold'}")
    if faults:
        raise typer.Exit(Exit.WRONG_CONFIGURATION)
