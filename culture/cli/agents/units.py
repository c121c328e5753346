"""Units of systemd with the paths of this machine."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from culture.bridge.settings import BridgeSettings
from culture.config import paths
from culture.config.digest import Digest
from culture.config.peer_uid import user_name
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
# What an agent's programs may need, and a server and a bridge do not.
_CONFINED = "NoNewPrivileges=yes\nUMask=0077\n"
_CONFINED_FOR_ALL = f"{_CONFINED}PrivateTmp=yes\nProtectSystem=full\n"


def agent_unit(nick: str) -> str:
    """The name of an agent's unit."""
    return f"culture@{nick}.service"


def team_unit(slug: str) -> str:
    """The name of the unit of a team's orchestrator."""
    return f"culture-team@{slug}.service"


def folder(system: bool) -> Path:
    """Where systemd looks for the units of this user, or of the machine."""
    configured = os.environ.get("XDG_CONFIG_HOME")
    user = Path(configured) / "systemd/user" if configured else Path.home() / USER_FOLDER
    return SYSTEM_FOLDER if system else user


def for_agent(nick: str, system: bool) -> str:
    """The unit that runs one agent."""
    return _unit(f"culture agent {nick}", ("start", "--foreground", nick), system, after=f" {SERVER_UNIT}")


def for_server(system: bool) -> str:
    """The unit that runs the server; SIGHUP has it read its configuration again."""
    more = f"ExecReload=/bin/kill -HUP $MAINPID\n{_confined(system)}"
    return _unit("culture server", ("server", "start", "--foreground"), system, more=more)


def for_bridge(system: bool) -> str:
    """The unit that runs the bridge, with the settings of this shell; secrets are read from files, not from units."""
    fields = BridgeSettings.model_fields
    said = {name.upper(): os.environ.get(name.upper()) for name in fields if fields[name].repr}
    settings = {name: value for name, value in said.items() if value is not None}
    after, more = f" {SERVER_UNIT}", _confined(system)
    return _unit("culture bridge", ("bridge", "serve"), system, after=after, more=more, variables=settings)


def for_team(slug: str, system: bool) -> str:
    """The unit that runs a team's orchestrator; its members outlive it, and the next one finds them."""
    words = ("team", "up", "--team", slug)
    return _unit(f"culture team {slug}", words, system, after=f" {SERVER_UNIT}", kill="process")


def for_digest(settings: Digest, system: bool) -> dict[str, str]:
    """The unit that posts a digest, and the timer that starts it as often as the settings say."""
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
    """What the daemon finds its files, its socket and the agent's program by."""
    here = str(Path(sys.executable).parent)
    variables = {
        Environment.HOME.value: str(paths.home()),
        "PATH": os.pathsep.join(dict.fromkeys([here, *os.environ.get("PATH", os.defpath).split(os.pathsep)])),
    }
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if system and runtime:
        # The commands look for the socket where this shell has it.
        variables["XDG_RUNTIME_DIR"] = runtime
    return variables


def quoted(word: str) -> str:
    """A word as systemd reads it."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{escaped}"' if escaped != word or any(mark in word for mark in " \t;'#") else word
