"""``culture service``: systemd units for agents, server, bridge, teams and digest."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from culture.cli.agents.select_agents import Everyone, Nicks, load, select_agents
from culture.cli.options import Choices
from culture.cli.output import fail
from culture.cli.team import select_team
from culture.clients.shared import pidfile
from culture.config import paths
from culture.config.peer_uid import user_name
from culture.config.services import DigestConfig
from culture.lib.files import replace_file
from culture.protocol.vocabulary import Environment, Exit

SERVER_UNIT = "culture-server.service"
BRIDGE_UNIT = "culture-bridge.service"
DIGEST_UNIT = "culture-digest.service"
DIGEST_TIMER = "culture-digest.timer"
USER_FOLDER = Path(".config/systemd/user")
SYSTEM_FOLDER = Path("/etc/systemd/system")
MARK = "# Written by `culture service install`; it is replaced by the next one."

_UNIT = """\
{mark}
[Unit]
Description={description}
Wants=network-online.target
After=network-online.target{after}

[Service]
Type=notify
ExecStart={command}
{environment}
{user}Restart=on-failure
RestartSec=5
# A wrong configuration does not get better by trying again.
RestartPreventExitStatus={wrong}
KillMode={kill}
TimeoutStopSec=60
{more}
[Install]
WantedBy={target}
"""

_ONCE = """\
{mark}
[Unit]
Description={description}
After=network-online.target {server}

[Service]
Type=oneshot
ExecStart={command}
{environment}
{user}{more}"""

_TIMER = """\
{mark}
[Unit]
Description={description}

[Timer]
{when}

[Install]
WantedBy=timers.target
"""

_NOTHING: Mapping[str, str] = {}
# Not for agents: their programs may need more.
_CONFINED = "NoNewPrivileges=yes\nUMask=0077\n"
_CONFINED_FOR_ALL = f"{_CONFINED}PrivateTmp=yes\nProtectSystem=full\n"


def agent_unit(nick: str) -> str:
    """Return the name of the systemd unit of an agent."""
    return f"culture@{nick}.service"


def team_unit(slug: str) -> str:
    """Return the name of the systemd unit of the team with this slug (short name)."""
    return f"culture-team@{slug}.service"


def unit_folder(system: bool) -> Path:
    """Return the folder for systemd units: this user's, or with ``system`` the whole machine's."""
    configured = os.environ.get("XDG_CONFIG_HOME")
    user = Path(configured) / "systemd/user" if configured else Path.home() / USER_FOLDER
    return SYSTEM_FOLDER if system else user


def for_agent(nick: str, system: bool) -> str:
    """Return the text of an agent's systemd unit, for this user or with ``system`` for all."""
    return _unit(f"culture agent {nick}", ("start", "--foreground", nick), system, after=f" {SERVER_UNIT}")


def for_server(system: bool) -> str:
    """Return the text of the server's systemd unit, for this user or with ``system`` for all.

    systemd reloads the server's configuration by SIGHUP.
    """
    more = f"ExecReload=/bin/kill -HUP $MAINPID\n{_confined(system)}"
    return _unit("culture server", ("server", "start", "--foreground"), system, more=more)


def for_bridge(system: bool) -> str:
    """Return the text of the bridge's systemd unit, for this user or with ``system`` for all.

    It contains the bridge's environment variables of this shell, but no secrets.
    """
    from culture.bridge.settings import BridgeSettings  # imports the transport

    fields = BridgeSettings.model_fields
    variables = {name.upper(): os.environ.get(name.upper()) for name in fields if fields[name].repr}
    settings = {name: value for name, value in variables.items() if value is not None}
    after, more = f" {SERVER_UNIT}", _confined(system)
    return _unit("culture bridge", ("bridge", "serve"), system, after=after, more=more, variables=settings)


def for_team(slug: str, system: bool) -> str:
    """Return the text of a team's systemd unit, for this user or with ``system`` for all.

    It runs the orchestrator; a restart of the unit ends no member.
    """
    words = ("team", "up", "--team", slug)
    return _unit(f"culture team {slug}", words, system, after=f" {SERVER_UNIT}", kill="process")


def for_digest(settings: DigestConfig, system: bool) -> dict[str, str]:
    """Return the texts, by unit name, of the unit that posts the digest and of its timer.

    ``system``: for the whole machine, not for this user.
    """
    once = _ONCE.format(
        mark=MARK,
        description="culture digest",
        server=SERVER_UNIT,
        command=_command(("digest", "--scheduled")),
        environment=_environment(_variables(system)),
        user=_user(system),
        more=_confined(system),
    )
    every = f"OnActiveSec={settings.every:.0f}\nOnUnitActiveSec={settings.every:.0f}"
    when = f"OnCalendar=*-*-* {settings.at}:00\nPersistent=true" if settings.at else every
    return {
        DIGEST_UNIT: once,
        DIGEST_TIMER: _TIMER.format(mark=MARK, description="when culture digest runs", when=when),
    }


def _confined(system: bool) -> str:
    return _CONFINED_FOR_ALL if system else _CONFINED


def _unit(
    description: str,
    words: tuple[str, ...],
    system: bool,
    *,
    after: str = "",
    more: str = "",
    kill: str = "mixed",
    variables: Mapping[str, str] = _NOTHING,
) -> str:
    named = {**_variables(system), **variables}
    return _UNIT.format(
        mark=MARK,
        description=description.replace("%", "%%"),
        after=after,
        command=_command(words),
        environment=_environment(named),
        user=_user(system),
        wrong=Exit.WRONG_CONFIGURATION.value,
        kill=kill,
        more=more,
        target="multi-user.target" if system else "default.target",
    )


def _command(words: tuple[str, ...]) -> str:
    return " ".join(map(quoted, (sys.executable, "-m", "culture", *words))).replace("$", "$$")


def _environment(variables: Mapping[str, str]) -> str:
    return "\n".join(f"Environment={quoted(f'{name}={value}')}" for name, value in variables.items())


def _user(system: bool) -> str:
    return f"User={user_name(os.geteuid())}\n" if system else ""


def _variables(system: bool) -> dict[str, str]:
    """Return the environment variables for a systemd unit: PATH and the folders of culture.

    ``system``: the unit is for the whole machine, not for this user.
    """
    here = str(Path(sys.executable).parent)
    variables = {
        Environment.HOME.value: str(paths.home()),
        "PATH": os.pathsep.join(dict.fromkeys([here, *os.environ.get("PATH", os.defpath).split(os.pathsep)])),
    }
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if system and runtime:
        # Commands look for the socket where this shell has it.
        variables["XDG_RUNTIME_DIR"] = runtime
    return variables


def quoted(word: str) -> str:
    """Return a word of a command line as a systemd unit needs it: in quotes if necessary."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{escaped}"' if escaped != word or any(mark in word for mark in " \t;'#") else word


group = typer.Typer(help="Run agents, the server, the bridge and teams under systemd.", no_args_is_help=True)

_READABLE = 0o644
_RUNNING = Path("/run/systemd/system")

Server = Annotated[bool, typer.Option("--server", help="The server of this machine.")]
Bridge = Annotated[bool, typer.Option("--bridge", help="The bridge, with the settings of this shell.")]
Teams = Annotated[list[str] | None, typer.Option("--team", metavar="SLUG", help="Team to run; may be repeated.")]
Digests = Annotated[bool, typer.Option("--digest", help="Timer that posts the digest, as set in culture.yaml.")]
System = Annotated[
    bool, typer.Option("--system/--user", help="For the whole machine, from boot on; else for your user.")
]
Folder = Annotated[
    Path | None, typer.Option("--folder", metavar="FOLDER", help="Write the files to this folder, not to systemd's.")
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
    show: Annotated[bool, typer.Option("--print", help="Print the units, and write nothing.")] = False,
    folder: Folder = None,
) -> None:
    """Write systemd units, and print how to start them.

    The units contain the paths of this machine. systemd does not restart an agent whose configuration is wrong.
    """
    units = _services(server, bridge, teams, system) | (_digest(system) if digest else {})
    if nicks or everyone or not units:
        units |= _agents(nicks, everyone, system)
    if show:
        typer.echo("\n".join(units.values()), nl=False)
        return
    where = folder or unit_folder(system)
    for name, text in units.items():
        _write(where / name, text)
        typer.echo(f"written  {where / name}")
    for nick in nicks or ():
        if pidfile.running(nick) is not None:
            typer.echo(f"{nick} is running already: `culture stop {nick}` before systemd starts it.", err=True)
    _next(units, where, system)


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
    """Stop systemd units and delete their files."""
    where = folder or unit_folder(system)
    if not (nicks or everyone or server or bridge or teams or digest):
        fail("say which agent, --all, --server, --bridge, --team or --digest", Exit.USAGE)
    names = [agent_unit(nick) for nick in nicks or ()]
    if everyone:
        names += [file.name for file in sorted(where.glob(agent_unit("*"))) if MARK in file.read_text()]
    names += [SERVER_UNIT] * server + [BRIDGE_UNIT] * bridge + [team_unit(slug) for slug in teams or ()]
    names += [DIGEST_TIMER, DIGEST_UNIT] * digest
    there = [name for name in dict.fromkeys(names) if (where / name).exists()]
    if not there:
        typer.echo(f"There is nothing to remove in {where}.")
    for name in there:
        _systemctl(system, "disable", "--now", name)
        (where / name).unlink()
        typer.echo(f"removed  {where / name}")
    _systemctl(system, "daemon-reload")


def _services(server: bool, bridge: bool, teams: list[str] | None, system: bool) -> dict[str, str]:
    """Return the texts, by unit name, of the selected units for server, bridge and teams.

    ``server``, ``bridge``: whether to include theirs. ``teams``: slugs. ``system``: for the whole machine.
    """
    units = {SERVER_UNIT: for_server(system)} if server else {}
    if bridge:
        units[BRIDGE_UNIT] = for_bridge(system)
    for slug in teams or ():
        select_team.select_team(slug)
        units[team_unit(slug)] = for_team(slug, system)
    return units


def _digest(system: bool) -> dict[str, str]:
    settings = Choices().load().config.digest
    if not settings.is_posted:
        fail("culture.yaml does not say where to: set digest.channel or digest.webhook", Exit.WRONG_CONFIGURATION)
    return for_digest(settings, system)


def _agents(nicks: list[str] | None, everyone: bool, system: bool) -> dict[str, str]:
    """Return the texts, by unit name, of the systemd units for the selected agents.

    ``everyone``: all of agents.yaml. ``system``: for the whole machine. The command ends for an agent that runs as
    another user.
    """
    units = {}
    for agent in select_agents(load(), nicks, everyone):
        if agent.user not in (None, user_name(os.geteuid())):
            fail(f"{agent.nick} runs as {agent.user}: put it into that user's own agents.yaml and install it there")
        units[agent_unit(agent.nick)] = for_agent(agent.nick, system)
    return units


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, text, mode=_READABLE)
    except OSError as error:
        fail(f"{file}: {error.strerror}; --folder puts it elsewhere, --user where you may write")


def _next(units: dict[str, str], where: Path, system: bool) -> None:
    """Print the commands by which the person enables and starts the written systemd units.

    ``units``: their texts by name. ``where``: the folder in which they are. ``system``: for the whole machine.
    """
    command = "systemctl" if system else "systemctl --user"
    if where != unit_folder(system):
        typer.echo(f"Move them to {unit_folder(system)} on a machine with systemd; then:")
    elif not _RUNNING.exists():
        typer.echo("systemd does not run here. Where it does:")
    names = " ".join(name for name in units if name != DIGEST_UNIT)  # its timer starts it
    typer.echo(f"  {command} daemon-reload && {command} enable --now {names}")
    if not system:
        typer.echo("  loginctl enable-linger   # once, so that they run while you are not logged in")


def _systemctl(system: bool, *words: str) -> None:
    if _RUNNING.exists() and shutil.which("systemctl"):
        subprocess.run(["systemctl", *([] if system else ["--user"]), *words], check=False)
