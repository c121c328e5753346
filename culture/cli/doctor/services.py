"""Units of systemd: whether they are those that would be written today."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from culture.cli.agents import units
from culture.cli.doctor.finding import Finding, error, hint, warning
from culture.cli.doctor.scene import Scene, shown
from culture.config.peer_uid import user_name
from culture.protocol.vocabulary import Environment

_LINGERING = Path("/var/lib/systemd/linger")
_PROGRAM = re.compile(r'^ExecStart=(?:"([^"]+)"|(\S+))', re.MULTILINE)
_HOME = re.compile(rf'^Environment="?{Environment.HOME}=(.*?)"?$', re.MULTILINE)
_AGENT, _TEAM = (
    re.compile(made("(.+)").replace(".service", r"\.service")) for made in (units.agent_unit, units.team_unit)
)


def installed(scene: Scene) -> Iterator[Finding]:
    """Those that `culture service install` wrote for this home folder."""
    for is_system in (False, True):
        folder, found = units.folder(is_system), 0
        for file in sorted(folder.glob("culture*.service")):
            text = _text(file)
            if units.MARK in text and _is_known(file.name) and _is_ours(text, scene):
                found += 1
                yield from _unit(scene, file, text, is_system)
        lingers = (_LINGERING / user_name(os.geteuid())).exists()
        if found and not (is_system or lingers) and _LINGERING.parent.is_dir():
            yield hint(
                "the units of this user end when you log out",
                "systemd ends what belongs to a user who is not there",
                "`loginctl enable-linger`, once",
            )


def _unit(scene: Scene, file: Path, text: str, is_system: bool) -> Iterator[Finding]:
    again = f"`culture service install {_which(file.name)}{' --system' if is_system else ''}`"
    program = _PROGRAM.search(text)
    path = Path((program[1] or program[2]).replace("%%", "%")) if program else None
    agent = _AGENT.fullmatch(file.name)
    if path is None or not path.exists():
        yield error(f"{shown(file)} starts {path}, which is not there", "the environment was moved or removed", again)
    elif agent and scene.settings is not None and scene.settings.agent(agent[1]) is None:
        yield warning(
            f"{shown(file)} is of an agent that agents.yaml does not name",
            "systemd tries to start it, in vain",
            f"`culture service uninstall {agent[1]}{' --system' if is_system else ''}`",
        )
    elif _essence(text) != _essence(_today(file.name, is_system)):
        yield hint(f"{shown(file)} is not what would be written today", "culture was updated, or moved", again)


def _is_known(name: str) -> bool:
    return name in (units.SERVER_UNIT, units.BRIDGE_UNIT) or bool(_AGENT.fullmatch(name) or _TEAM.fullmatch(name))


def _which(name: str) -> str:
    agent, team = _AGENT.fullmatch(name), _TEAM.fullmatch(name)
    if team:
        return f"--team {team[1]}"
    return agent[1] if agent else "--bridge" if name == units.BRIDGE_UNIT else "--server"


def _today(name: str, is_system: bool) -> str:
    agent, team = _AGENT.fullmatch(name), _TEAM.fullmatch(name)
    if team:
        return units.for_team(team[1], is_system)
    if agent:
        return units.for_agent(agent[1], is_system)
    return units.for_bridge(is_system) if name == units.BRIDGE_UNIT else units.for_server(is_system)


def _essence(text: str) -> list[str]:
    """Without the variables, which are those of the shell that wrote it."""
    return [line for line in text.splitlines() if not line.startswith("Environment=") and line.strip()]


def _is_ours(text: str, scene: Scene) -> bool:
    found = _HOME.search(text)
    return found is not None and Path(found[1].replace("%%", "%")) == scene.home


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
