"""``culture service``: agents, the server, the bridge and teams under systemd."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from culture.cli.agents import units
from culture.cli.agents.known import Everyone, Nicks, chosen, load
from culture.cli.choices import Choices
from culture.cli.failing import fail
from culture.cli.team import place
from culture.clients.shared import pidfile
from culture.config.peer_uid import user_name
from culture.protocol.vocabulary import Exit

group = typer.Typer(help="Have systemd run agents, the server, the bridge and teams.", no_args_is_help=True)

_READABLE = 0o644
_RUNNING = Path("/run/systemd/system")

Server = Annotated[bool, typer.Option("--server", help="The server of this machine.")]
Bridge = Annotated[bool, typer.Option("--bridge", help="The bridge, with the settings of this shell.")]
Teams = Annotated[list[str] | None, typer.Option("--team", metavar="SLUG", help="The team of this project.")]
Digests = Annotated[bool, typer.Option("--digest", help="A timer that posts the digest, as culture.yaml says.")]
System = Annotated[
    bool, typer.Option("--system/--user", help="For the whole machine, from its start on; else for you alone.")
]
Folder = Annotated[
    Path | None, typer.Option("--folder", metavar="FOLDER", help="Put the files here, not where systemd looks.")
]


@group.command()
def install(
    nicks: Nicks = None,
    everyone: Everyone = False,
    server: Server = False,
    bridge: Bridge = False,
    teams: Teams = None,
    digest: Digests = False,
    system: System = False,
    show: Annotated[bool, typer.Option("--print", help="Only print what would be written.")] = False,
    folder: Folder = None,
) -> None:
    """Write units for systemd, and say how to start them.

    They hold the paths of this machine. An agent whose configuration is wrong is
    not started again and again.
    """
    wanted = _services(server, bridge, teams, system) | (_digest(system) if digest else {})
    if nicks or everyone or not wanted:
        wanted |= _agents(nicks, everyone, system)
    if show:
        typer.echo("\n".join(wanted.values()), nl=False)
        return
    where = folder or units.folder(system)
    for name, text in wanted.items():
        _write(where / name, text)
        typer.echo(f"written  {where / name}")
    for nick in nicks or ():
        if pidfile.running(nick) is not None:
            typer.echo(f"{nick} is running already: `culture stop {nick}` before systemd starts it.", err=True)
    _next(wanted, where, system)


@group.command()
def uninstall(
    nicks: Nicks = None,
    everyone: Everyone = False,
    server: Server = False,
    bridge: Bridge = False,
    teams: Teams = None,
    digest: Digests = False,
    system: System = False,
    folder: Folder = None,
) -> None:
    """Stop units of systemd and remove their files."""
    where = folder or units.folder(system)
    if not (nicks or everyone or server or bridge or teams or digest):
        fail("say which agent, --all, --server, --bridge, --team or --digest", Exit.USAGE)
    names = [units.agent_unit(nick) for nick in nicks or ()]
    if everyone:
        names += [file.name for file in sorted(where.glob(units.agent_unit("*"))) if units.MARK in file.read_text()]
    names += (
        [units.SERVER_UNIT] * server + [units.BRIDGE_UNIT] * bridge + [units.team_unit(slug) for slug in teams or ()]
    )
    names += [units.DIGEST_TIMER, units.DIGEST_UNIT] * digest
    there = [name for name in dict.fromkeys(names) if (where / name).exists()]
    if not there:
        typer.echo(f"There is nothing to remove in {where}.")
    for name in there:
        _systemctl(system, "disable", "--now", name)
        (where / name).unlink()
        typer.echo(f"removed  {where / name}")
    _systemctl(system, "daemon-reload")


def _services(server: bool, bridge: bool, teams: list[str] | None, system: bool) -> dict[str, str]:
    """The units that are no agents', by name."""
    found = {units.SERVER_UNIT: units.for_server(system)} if server else {}
    if bridge:
        found[units.BRIDGE_UNIT] = units.for_bridge(system)
    for slug in teams or ():
        place.chosen(slug)
        found[units.team_unit(slug)] = units.for_team(slug, system)
    return found


def _digest(system: bool) -> dict[str, str]:
    settings = Choices().load().config.digest
    if not settings.is_posted:
        fail("culture.yaml does not say where to: set digest.channel or digest.webhook", Exit.WRONG_CONFIGURATION)
    return units.for_digest(settings, system)


def _agents(nicks: list[str] | None, everyone: bool, system: bool) -> dict[str, str]:
    """The units of agents, by name."""
    found = {}
    for agent in chosen(load(), nicks, everyone):
        if agent.user not in (None, user_name(os.geteuid())):
            fail(f"{agent.nick} runs as {agent.user}: put it into that user's own agents.yaml and install it there")
        found[units.agent_unit(agent.nick)] = units.for_agent(agent.nick, system)
    return found


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f".{file.name}.new")
        new.write_text(text, encoding="utf-8")
        new.chmod(_READABLE)
        os.replace(new, file)
    except OSError as error:
        fail(f"{file}: {error.strerror}; --folder puts it elsewhere, --user where you may write")


def _next(wanted: dict[str, str], where: Path, system: bool) -> None:
    """What is left to do."""
    command = "systemctl" if system else "systemctl --user"
    if where != units.folder(system):
        typer.echo(f"Move them to {units.folder(system)} on a machine with systemd; then:")
    elif not _RUNNING.exists():
        typer.echo("systemd does not run here. Where it does:")
    names = " ".join(name for name in wanted if name != units.DIGEST_UNIT)  # its timer starts it
    typer.echo(f"  {command} daemon-reload && {command} enable --now {names}")
    if not system:
        typer.echo("  loginctl enable-linger   # once, so that they run while you are not logged in")


def _systemctl(system: bool, *words: str) -> None:
    if _RUNNING.exists() and shutil.which("systemctl"):
        subprocess.run(["systemctl", *([] if system else ["--user"]), *words], check=False)
