"""``culture up``: everything there is, on this machine, with one command."""

import os
import socket
import sys

import typer

from culture.cli import pidfile
from culture.cli.choices import Choices, ConfigFile, DataDir, Host, Name, Port
from culture.cli.connect import how_to_connect
from culture.cli.serve import Addresses, Hangup, serve
from culture.config import paths
from culture.config.model import ServerConfig
from culture.protocol.names import short_name, valid_short_name

FIRST_FILE = """\
# The server's name begins every nick here (spark-ori): choose it once.
name: {name}
"""


def up(
    config: ConfigFile = None,
    name: Name = None,
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
) -> None:
    """Run the server here and say how to connect.

    Ctrl-C stops it. The first time, the server's name is written to
    ~/.culture/culture.yaml.
    """
    if config is None and name is None:
        _settle_the_name()
    choices = Choices(config, name, host, port, data_dir)
    settings = choices.load().config
    note = pidfile.running(settings.name)
    if note:
        typer.echo(f"{settings.name} is up already (pid {note.pid}).\n")
        typer.echo(how_to_connect(settings, note.addresses))
        return
    serve(lambda: choices.load().config, options=choices.arguments, ready=_greet, hangup=Hangup.STOP)
    typer.echo(f"{settings.name} has stopped.")


def _greet(settings: ServerConfig, addresses: Addresses) -> None:
    typer.echo(f"{settings.name} is up; Ctrl-C stops it.\n")
    typer.echo(how_to_connect(settings, addresses))


def _settle_the_name() -> None:
    """Write the name down the first time, so that it stays when the host is renamed: data and nicks hang on it."""
    file = paths.server_file()
    if file.exists():
        return
    name = _ask(paths.default_server_name())
    with open(paths.open_private(file, os.O_WRONLY | os.O_EXCL), "w", encoding="utf-8") as text:
        text.write(FIRST_FILE.format(name=name))
    typer.echo(f"Wrote {file}: this server is called {name}.")


def _ask(proposal: str) -> str:
    """The proposal where it is the host's own name or nobody can be asked, else what the person says."""
    if short_name(socket.gethostname().lower()) == proposal or not sys.stdin.isatty():
        return proposal
    while True:
        name: str = typer.prompt("A short name for this server (a-z, 0-9)", default=proposal)
        if valid_short_name(name):
            return name
        typer.echo("1 to 12 of a-z and 0-9, a letter first.")
