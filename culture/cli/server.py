"""``culture server``: start it, stop it, look at it."""

import time
from typing import Annotated

import typer

from culture.cli import background, pidfile
from culture.cli.cert import cert
from culture.cli.choices import Choices, ConfigFile, DataDir, Host, Name, Port
from culture.cli.config import check_skills
from culture.cli.serve import serve
from culture.config import paths
from culture.config.model import ServerConfig
from culture.config.provenance import effective
from culture.protocol.vocabulary import Exit

group = typer.Typer(help="Start the server, stop it, look at it.", no_args_is_help=True)
group.command("cert")(cert)


@group.command()
def start(
    config: ConfigFile = None,
    name: Name = None,
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay in this terminal; Ctrl-C stops it.")] = False,
) -> None:
    """Start the server and return when it accepts connections.

    It goes on in the background, and what it prints is in
    ~/.culture/log/<name>.log.
    """
    choices = Choices(config, name, host, port, data_dir)
    if foreground:
        serve(lambda: choices.load().config, options=choices.arguments)
    else:
        _start(choices, choices.load().config)


@group.command()
def stop(config: ConfigFile = None, name: Name = None) -> None:
    """Stop the server.

    Its clients are told, and get what is queued for them first.
    """
    typer.echo(_stop(Choices(config, name).server_name()))


@group.command()
def restart(
    config: ConfigFile = None,
    name: Name = None,
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
) -> None:
    """Stop the server and start it again in the background.

    It keeps the options it was started with, except for those given here.
    """
    choices = Choices(config, name, host, port, data_dir)
    note = pidfile.running(choices.server_name())
    if note:
        choices = choices.over(Choices.parse(note.options))
    # A wrong configuration is found before the server that still runs is stopped.
    loaded = choices.load()
    check_skills(loaded)
    settings = loaded.config
    if note:
        typer.echo(_stop(settings.name))
    _start(choices, settings)


@group.command()
def status(config: ConfigFile = None, name: Name = None) -> None:
    """Say whether the server runs, and where.

    The exit code is 1 when it does not run or does not answer.
    """
    server = Choices(config, name).server_name()
    note = pidfile.running(server)
    if note is None:
        typer.echo(f"{server} is not running. Start it with `culture server start`.")
        raise typer.Exit(Exit.FAILED)
    healthy = bool(note.addresses) and all(map(background.accepts, note.addresses))
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(note.since))
    typer.echo(f"{server} is running (pid {note.pid}) since {since}.")
    typer.echo(f"  listens on  {_shown(note.addresses)}{'' if healthy else '  (does not answer)'}")
    typer.echo(f"  data        {note.data_dir}")
    typer.echo(f"  log         {note.log or 'where it was started, not in a file'}")
    if not healthy:
        raise typer.Exit(Exit.FAILED)


@group.command("config")
def show_config(
    config: ConfigFile = None,
    name: Name = None,
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
) -> None:
    """Show every setting and where its value came from.

    Secrets are shown as stars.
    """
    rows = effective(Choices(config, name, host, port, data_dir).load())
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for row in rows:
        typer.echo(f"{row.key:<{widths[0]}}  {row.value:<{min(widths[1], 40)}}  {row.source}")


def _start(choices: Choices, settings: ServerConfig) -> None:
    server = settings.name
    running = pidfile.running(server)
    if running:
        typer.echo(pidfile.already_running(server, running), err=True)
        raise typer.Exit(Exit.FAILED)
    try:
        note = background.start(server, choices.arguments)
    except background.EndedEarly as early:
        typer.echo(early.text or f"{server} ended at once; see {paths.log_file(server)}", err=True)
        wrong = early.code == Exit.WRONG_CONFIGURATION
        raise typer.Exit(Exit.WRONG_CONFIGURATION if wrong else Exit.FAILED) from None
    typer.echo(f"{server} is running (pid {note.pid}) on {_shown(note.addresses)}.")


def _stop(server: str) -> str:
    gone = pidfile.end(server)
    if gone is None:
        return f"{server} is not running."
    if not gone:
        typer.echo(f"{server} has been told, but is still busy stopping; see {paths.log_file(server)}", err=True)
        raise typer.Exit(Exit.FAILED)
    return f"{server} has stopped."


def _shown(addresses: tuple[tuple[str, int], ...]) -> str:
    return (
        ", ".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in addresses) or "nothing yet"
    )
