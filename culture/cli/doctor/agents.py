"""The agents: their folders, what they are doing, and what they have left behind."""

import os
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from culture.cli.agents.agent_report import SILENT, STARTING, STOPPED, report
from culture.cli.doctor.inventory import Inventory, shown
from culture.cli.doctor.runner import Finding, error, hint, warning
from culture.cli.humanize import counted
from culture.cli.team.select_team import TEAM, running
from culture.clients.shared import ending
from culture.config import paths
from culture.config.team import TeamConfig
from culture.lib.process.orphans import carrying
from culture.orchestrator.journal.store import look
from culture.protocol.vocabulary import AgentState

_AT_ONCE = 16


def folders(scene: Inventory) -> Iterator[Finding]:
    """Where they work."""
    for agent in scene.agents:
        place = agent.directory
        if not place.is_dir():
            yield error(
                f"the folder of {agent.nick} is not there: {shown(place)}",
                "it cannot start",
                f"mkdir -p {shown(place)}, or correct `directory:` in {shown(paths.agents_file())}",
            )
        elif not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
            yield warning(
                f"{agent.nick} may not write to its folder {shown(place)}",
                "it can look at what is there, and change nothing",
                f"chmod u+rwx {shown(place)}",
            )


def states(scene: Inventory) -> Iterator[Finding]:
    """What each is doing, as its daemon says, else as its file does."""
    known = {agent.nick: agent.agent for agent in scene.agents}
    names = list(dict.fromkeys([*known, *scene.daemons]))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for found in pool.map(lambda nick: _report(nick, known.get(nick, "?")), names):
            yield from found if isinstance(found, list) else _state(found)
    for nick in sorted(scene.daemons.keys() - known.keys()) if scene.settings is not None else ():
        yield hint(
            f"{nick} runs, and agents.yaml does not name it",
            "it was taken out of the file, or belongs to a team",
            f"`culture stop {nick}` if nobody needs it",
        )


def _report(nick: str, backend: str) -> dict[str, Any] | list[Finding]:
    try:
        return report(nick, backend)
    except sqlite3.Error:
        return []  # told by the check of the databases


def _state(said: dict[str, Any]) -> Iterator[Finding]:
    nick, state, why = said["nick"], said["state"], said.get("why") or ""
    if state in (AgentState.PARKED, AgentState.CRASHED) or (
        state == STOPPED and said.get("why") not in (None, "paused")
    ):
        yield warning(
            f"{nick} is {state if state != STOPPED else 'parked'}{f': {why}' if why else ''}",
            "it crashed too often, or has spent what it may",
            f"`culture logs {nick}`, then `culture resume {nick}`" if state != STOPPED else f"`culture logs {nick}`",
        )
    elif state == SILENT:
        yield error(f"the daemon of {nick} does not answer", why, f"`culture restart {nick}`")
    elif state == STARTING:
        yield warning(f"{nick} is not ready yet", "its server or its program lets it wait", f"`culture logs {nick}`")
    elif state != STOPPED and not said["connected"]:
        yield warning(
            f"{nick} is not on its server",
            "what is said to it is kept there, and comes later",
            f"`culture logs {nick}`",
        )
    elif state == STOPPED and said["unread"]:
        waiting = counted(said["unread"], "message waits", "messages wait")
        yield hint(f"{nick} does not run, and {waiting} for it", "nobody answers", f"`culture start {nick}`")


def orphans(scene: Inventory) -> Iterator[Finding]:
    """Processes that carry the mark of an agent whose daemon is gone."""
    for file in sorted((scene.home / "inbox").glob("*.db")):
        nick = file.stem
        if nick in scene.daemons:
            continue
        try:
            marks = ending.tokens(nick)
        except sqlite3.Error:
            continue
        left = [pid for mark in marks for pid in carrying(mark)]
        if left:
            yield warning(
                f"{counted(len(left), 'process', 'processes')} of {nick} outlived its daemon: "
                f"{', '.join(map(str, left[:10]))}",
                "the daemon was killed; they go on working and spending with nobody to hear of it",
                f"`culture stop {nick}` ends them",
            )


_OLD = 600.0
_LOCKS = ("HEAD.lock", "refs/heads/main.lock", "packed-refs.lock")
_PREFIX, _KEPT = "agent-task-", ".kept-"


def projects(scene: Inventory) -> Iterator[Finding]:
    """The repositories that teams work on."""
    for team in scene.teams:
        place = team.project_dir
        if not (place / ".git").exists():
            what = "is not there" if not place.is_dir() else "is no git repository"
            yield error(
                f"the project of the team {team.slug} {what}: {shown(place)}",
                "the team cannot begin a task",
                f"correct `project_dir:` in {shown(paths.team_dir(team.slug) / TEAM)}",
            )
            continue
        lock = place / ".git" / "index.lock"
        if _is_old(lock):
            yield warning(
                f"{shown(lock)} is {int(time.time() - lock.stat().st_mtime)} s old",
                "a git that was killed has left it; until it is gone nobody can commit there",
                f"rm {shown(lock)}, once no git runs there",
            )


def worktrees(scene: Inventory) -> Iterator[Finding]:
    """The worktrees of tasks that are over."""
    for team in scene.teams:
        left = [path for path in _worktrees(team) if running(team.slug) is None and not _is_needed(team, path)]
        for path in left:
            remove = f"git -C {shown(team.project_dir)} worktree remove {shown(path)}"
            yield hint(
                f"{shown(path)} belongs to no task of the team {team.slug} any more",
                "it was kept because something in it would be lost, or its orchestrator was killed",
                f"look at it, then {remove if (path / '.git').exists() else f'rm -r {shown(path)}'}",
            )


def _worktrees(team: TeamConfig) -> list[Path]:
    return sorted((team.project_dir / team.worktrees).glob(f"{_PREFIX}*"))


def _is_needed(team: TeamConfig, path: Path) -> bool:
    live = {task.id for task in look(paths.team_dir(team.slug)).live_tasks()}
    return _KEPT not in path.name and path.name.removeprefix(_PREFIX) in live


def wikis(scene: Inventory) -> Iterator[Finding]:
    """The wikis of projects."""
    for folder in sorted(each for each in (scene.home / "wiki").glob("*") if each.is_dir()):
        if not (folder / "objects").is_dir() or not (folder / "HEAD").is_file():
            yield error(
                f"{shown(folder)} is no wiki any more",
                "its repository is not whole",
                f"put a clone in its place (`git clone --bare`), or mv {shown(folder)} {shown(folder)}.old",
            )
        for lock in (folder / name for name in _LOCKS):
            if _is_old(lock):
                yield hint(
                    f"{shown(lock)} was left by a git that was killed", "the next write removes it", f"rm {shown(lock)}"
                )


def waiting(scene: Inventory) -> Iterator[Finding]:
    """What was to be written to a wiki, and could not be yet."""
    for team in scene.teams:
        found = list((paths.team_dir(team.slug) / "wiki-queue").glob("[0-9]*.json"))
        if found:
            yield hint(
                f"{counted(len(found), 'page waits', 'pages wait')} to be written to the wiki of {team.slug}",
                "the wiki could not be reached or written; nothing is lost",
                "`culture team up` writes them as soon as the wiki can be written",
            )


def _is_old(file: Path) -> bool:
    try:
        return file.stat().st_mtime < time.time() - _OLD
    except OSError:
        return False
