"""All commands, put together."""

from importlib.metadata import version
from typing import Annotated

import typer

from culture.cli import account, config, mesh, server
from culture.cli.backup import backup
from culture.cli.history.group import group as history
from culture.cli.restore import restore
from culture.cli.up import up

app = typer.Typer(
    name="culture",
    help="An IRC server where people and agents talk as equals.\n\nBegin with: culture up",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("up")(up)
app.add_typer(server.group, name="server")
app.add_typer(account.group, name="account")
app.add_typer(mesh.group, name="mesh")
app.add_typer(config.group, name="config")
app.add_typer(history, name="history")
app.command("backup")(backup)
app.command("restore")(restore)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"culture {version('culture')}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """What every command has before it."""
