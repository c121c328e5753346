"""``culture server``: starts, stops and shows the server."""

import time
from typing import Annotated

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.options import AsJson, Choices, ConfigFile, DataDir, Host, Name, Port
from culture.cli.output import as_json as in_json
from culture.cli.server import background, pid_file
from culture.cli.server.certificate import cert
from culture.config import paths
from culture.config.model import ServerConfig
from culture.config.provenance import effective
from culture.lib.process.background import EndedEarly
from culture.protocol.vocabulary import Exit

group = typer.Typer(help="Start, stop and inspect the server.", no_args_is_help=True)
group.command("cert")(cert)


@group.command()
def start(
    config: ConfigFile = None,
    name: Name = None,
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    foreground: Annotated[bool, typer.Option("--foreground", help="Run in this terminal; Ctrl-C stops it.")] = False,
) -> None:
    """Start the server, and return when it accepts connections.

    It runs in the background, and prints to ~/.culture/log/<name>.log.
    """
    choices = Choices(config, name, host, port, data_dir)
    if foreground:
        from culture.cli.server.serve import serve  # the server itself, which only this needs

        serve(lambda: choices.load().config, options=choices.arguments)
    else:
        _start(choices, choices.load().config)


@group.command()
def stop(config: ConfigFile = None, name: Name = None) -> None:
    """Stop the server.

    Clients are told, and get their queued messages first.
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

    It keeps the options it was started with, unless you give others.
    """
    from culture.cli.config import check_skills

    choices = Choices(config, name, host, port, data_dir)
    note = pid_file.running(choices.server_name())
    if note:
        choices = choices.over(Choices.parse(note.options))
    # Find a wrong configuration before the running server is stopped.
    loaded = choices.load()
    check_skills(loaded)
    settings = loaded.config
    if note:
        typer.echo(_stop(settings.name))
    _start(choices, settings)


@group.command()
@open_to_agents
def status(config: ConfigFile = None, name: Name = None, as_json: AsJson = False) -> None:
    """Show whether the server runs, and where it listens.

    The exit code is 1 when it does not run or does not answer.
    """
    server = Choices(config, name).server_name()
    note = pid_file.running(server)
    healthy = note is not None and bool(note.addresses) and all(map(background.accepts, note.addresses))
    if as_json:
        typer.echo(in_json(_facts(server, note, healthy)))
        raise typer.Exit(Exit.DONE if healthy else Exit.FAILED)
    if note is None:
        start = f"culture server start{f' --name {name}' if name else ''}"
        typer.echo(f"{server} is not running. Start it with `{start}`.{_others()}")
        raise typer.Exit(Exit.FAILED)
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(note.since))
    typer.echo(f"{server} is running (pid {note.pid}) since {since}.")
    typer.echo(f"  listens on  {_shown(note.addresses)}{'' if healthy else '  (does not answer)'}")
    typer.echo(f"  data        {note.data_dir}")
    typer.echo(f"  log         {note.log or 'the terminal where it was started'}")
    if not healthy:
        raise typer.Exit(Exit.FAILED)


@group.command("config")
@open_to_agents
def show_config(
    config: ConfigFile = None,
    name: Name = None,
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show every setting and where its value comes from.

    Secrets are shown as stars.
    """
    rows = effective(Choices(config, name, host, port, data_dir).load())
    if as_json:
        typer.echo(in_json([row._asdict() for row in rows]))
        return
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for row in rows:
        typer.echo(f"{row.key:<{widths[0]}}  {row.value:<{min(widths[1], 40)}}  {row.source}")


def _facts(server: str, note: pid_file.ServerNote | None, healthy: bool) -> dict[str, object]:
    facts: dict[str, object] = {"name": server, "running": note is not None, "answers": healthy}
    if note is None:
        return facts
    listens = [{"host": host, "port": port} for host, port in note.addresses]
    log = str(note.log) if note.log else None
    return {**facts, "pid": note.pid, "since": note.since, "listens": listens, "data": str(note.data_dir), "log": log}


def _start(choices: Choices, settings: ServerConfig) -> None:
    server = settings.name
    running = pid_file.running(server)
    if running:
        typer.echo(pid_file.already_running(server, running), err=True)
        raise typer.Exit(Exit.FAILED)
    try:
        note = background.start(server, choices.arguments)
    except EndedEarly as early:
        typer.echo(early.text, err=True)
        raise typer.Exit(early.code) from None
    typer.echo(f"{server} is running (pid {note.pid}) on {_shown(note.addresses)}.")


def _stop(server: str) -> str:
    gone = pid_file.end(server)
    if gone is None:
        return f"{server} is not running.{_others()}"
    if not gone:
        typer.echo(f"{server} was told to stop, but is still busy; see {paths.log_file(server)}", err=True)
        raise typer.Exit(Exit.FAILED)
    return f"{server} has stopped."


def _others() -> str:
    living = pid_file.all_running()
    return f" Other servers are running: {', '.join(living)} (`--name {living[0]}`)." if living else ""


def _shown(addresses: tuple[tuple[str, int], ...]) -> str:
    return (
        ", ".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in addresses) or "nothing yet"
    )
