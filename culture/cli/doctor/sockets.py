"""The Unix sockets of daemons: where they are, whose they are, and whether somebody is behind them."""

import os
import re
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from culture.cli.agents import service
from culture.cli.doctor.inventory import Inventory, shown
from culture.cli.doctor.runner import Finding, error, hint, warning
from culture.clients.shared.skill.call import find_socket
from culture.config import paths
from culture.config.peer_uid import user_name
from culture.lib.files import PRIVATE_FILE
from culture.protocol.vocabulary import Environment

_PATIENCE = 1.0
_SHARED = stat.S_IWGRP | stat.S_IWOTH


def folder(scene: Inventory) -> Iterator[Finding]:
    """The folder in which they are made."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if not runtime:  # they are in the home folder
        return
    try:
        status = Path(runtime).stat()
    except OSError as wrong:
        yield error(
            f"XDG_RUNTIME_DIR is {runtime}: {wrong.strerror}",
            "the sockets of agents are made there",
            "`loginctl enable-linger` keeps it while you are not logged in; else unset it",
        )
        return
    if status.st_uid not in (0, os.geteuid()):
        yield error(
            f"XDG_RUNTIME_DIR is {runtime}, a folder of another user",
            "it stays so after sudo and su; no socket is made there",
            "`unset XDG_RUNTIME_DIR`, or set it to a folder of your own",
        )
    elif status.st_mode & _SHARED and not status.st_mode & stat.S_ISVTX:
        yield error(
            f"others may write to XDG_RUNTIME_DIR, {runtime}", "no socket is made there", f"chmod 700 {runtime}"
        )


def temporary(scene: Inventory) -> Iterator[Finding]:
    """Where programs put what they need for a moment."""
    said = os.environ.get("TMPDIR")
    place = Path(said or "/tmp")
    name = f"TMPDIR, {place}," if said else str(place)
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
        yield error(
            f"{name} cannot be written", "agents' programs and git need it", "`unset TMPDIR`, or make that folder"
        )
        return
    mode = place.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        yield warning(
            f"in {name} everybody may remove the files of everybody",
            "somebody could put files in the place of yours",
            f"chmod +t {place}",
        )


def lengths(scene: Inventory) -> Iterator[Finding]:
    """The kernel's limit for their paths."""
    for agent in scene.agents:
        try:
            paths.agent_socket(agent.nick)
        except ValueError as wrong:
            yield error(f"{agent.nick} cannot have a socket", str(wrong), "choose a shorter nick")


def states(scene: Inventory) -> Iterator[Finding]:
    """Each is ours, for its owner alone, and somebody answers."""
    nicks = {agent.nick for agent in scene.agents} | scene.daemons.keys()
    ours = {path: nick for nick in nicks if (path := _socket_of(nick)) is not None}
    found = {**{path: "" for path in paths.agent_sockets() if path.lstat().st_uid == os.geteuid()}, **ours}
    for path, nick in sorted(found.items()):
        yield from _state(path, nick, nick in scene.daemons and scene.daemons[nick].ready)


def _socket_of(nick: str) -> Path | None:
    try:
        return find_socket(nick)
    except ValueError:
        return None


def _state(path: Path, nick: str, runs: bool) -> Iterator[Finding]:
    try:
        status = path.lstat()
    except FileNotFoundError:
        if runs:
            yield error(
                f"{nick} runs, and its socket {path} is not there",
                "it was removed, or the daemon was started with another XDG_RUNTIME_DIR; the agent cannot use IRC",
                f"`culture restart {nick}`",
            )
        return
    if not stat.S_ISSOCK(status.st_mode):
        kind = "a symlink" if stat.S_ISLNK(status.st_mode) else "no socket"
        yield error(
            f"{path} is {kind}", "nothing of ours makes that; no daemon starts there", f"ls -l {path}; rm {path}"
        )
    elif status.st_uid != os.geteuid():
        yield error(
            f"{path} belongs to another user",
            "it could be somebody who wants to be taken for your agent",
            "`export XDG_RUNTIME_DIR=` a folder of your own",
        )
    elif stat.S_IMODE(status.st_mode) & 0o077:
        yield warning(
            f"others may speak to {path}", "they can make the agent do things", f"chmod 600 {path}", _shut(path)
        )
    elif not _answers(path):
        yield hint(
            f"nobody is behind {path}",
            "a daemon that was killed has left it; the next start takes it away",
            f"rm {path}",
            _remove(path),
        )


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        trial.settimeout(_PATIENCE)
        try:
            trial.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # too busy, or the path is too long: told elsewhere
    return True


def _shut(path: Path) -> Callable[[], None]:
    return lambda: path.chmod(PRIVATE_FILE)


def _remove(path: Path) -> Callable[[], None]:
    def mend() -> None:
        if not _answers(path):
            path.unlink()

    return mend


_LINGERING = Path("/var/lib/systemd/linger")
_PROGRAM = re.compile(r'^ExecStart=(?:"([^"]+)"|(\S+))', re.MULTILINE)
_HOME = re.compile(rf'^Environment="?{Environment.HOME}=(.*?)"?$', re.MULTILINE)
_AGENT, _TEAM = (
    re.compile(made("(.+)").replace(".service", r"\.service")) for made in (service.agent_unit, service.team_unit)
)


def installed(scene: Inventory) -> Iterator[Finding]:
    """Those that `culture service install` wrote for this home folder."""
    for is_system in (False, True):
        folder, found = service.unit_folder(is_system), 0
        for file in sorted(folder.glob("culture*.service")):
            text = _text(file)
            if service.MARK in text and _is_known(file.name) and _is_ours(text, scene):
                found += 1
                yield from _unit(scene, file, text, is_system)
        lingers = (_LINGERING / user_name(os.geteuid())).exists()
        if found and not (is_system or lingers) and _LINGERING.parent.is_dir():
            yield hint(
                "the units of this user end when you log out",
                "systemd ends what belongs to a user who is not there",
                "`loginctl enable-linger`, once",
            )


def _unit(scene: Inventory, file: Path, text: str, is_system: bool) -> Iterator[Finding]:
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
    return name in (service.SERVER_UNIT, service.BRIDGE_UNIT) or bool(_AGENT.fullmatch(name) or _TEAM.fullmatch(name))


def _which(name: str) -> str:
    agent, team = _AGENT.fullmatch(name), _TEAM.fullmatch(name)
    if team:
        return f"--team {team[1]}"
    return agent[1] if agent else "--bridge" if name == service.BRIDGE_UNIT else "--server"


def _today(name: str, is_system: bool) -> str:
    agent, team = _AGENT.fullmatch(name), _TEAM.fullmatch(name)
    if team:
        return service.for_team(team[1], is_system)
    if agent:
        return service.for_agent(agent[1], is_system)
    return service.for_bridge(is_system) if name == service.BRIDGE_UNIT else service.for_server(is_system)


def _essence(text: str) -> list[str]:
    """Without the variables, which are those of the shell that wrote it."""
    return [line for line in text.splitlines() if not line.startswith("Environment=") and line.strip()]


def _is_ours(text: str, scene: Inventory) -> bool:
    found = _HOME.search(text)
    return found is not None and Path(found[1].replace("%%", "%")) == scene.home


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
