"""Teams and wikis: their repositories, and what was left in them."""

import time
from collections.abc import Iterator
from pathlib import Path

from culture.cli.amounts import counted
from culture.cli.doctor.finding import Finding, error, hint, warning
from culture.cli.doctor.scene import Scene, shown
from culture.cli.team.place import TEAM, running
from culture.config import paths
from culture.config.team import TeamConfig
from culture.orchestrator.book import look

_OLD = 600.0
_LOCKS = ("HEAD.lock", "refs/heads/main.lock", "packed-refs.lock")
_PREFIX, _KEPT = "agent-task-", ".kept-"


def projects(scene: Scene) -> Iterator[Finding]:
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


def worktrees(scene: Scene) -> Iterator[Finding]:
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


def wikis(scene: Scene) -> Iterator[Finding]:
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


def waiting(scene: Scene) -> Iterator[Finding]:
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
