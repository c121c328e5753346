"""Which team a command is about, and requests to its orchestrator."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from culture.cli.output import fail
from culture.clients.shared.skill.call import PATIENCE, CallFailed, NoDaemon, call
from culture.config import paths
from culture.config.load import load_team
from culture.config.team import TeamConfig
from culture.orchestrator.repository.locks import FILE, holder_of
from culture.orchestrator.repository.worktrees import Worktrees
from culture.protocol.names import nearest
from culture.protocol.vocabulary import Exit

TEAM = "team.yaml"
ASK_THERE = "ask in the project's channel"
"""Hint to a member of a team that types a command for people: the way that members have."""
Slug = Annotated[
    str | None,
    typer.Option("--team", "-t", metavar="SLUG", help="Team.  [default: that of this folder, or the only one]"),
]


def team_slugs() -> list[str]:
    """Return the slugs (short names) of all teams in this home folder, sorted."""
    return sorted(file.parent.name for file in (paths.home() / "team").glob(f"*/{TEAM}"))


def select_team(slug: str | None) -> TeamConfig:
    """Return the configuration of the team with this slug; the command ends if there is none.

    None means the team of this folder's project, or else the only team.
    """
    return (
        load_team(paths.team_dir(slug or _default_slug()) / TEAM).config
        if slug is None or slug in team_slugs()
        else _fail_unknown_team(slug)
    )


def orchestrator_pid(slug: str) -> int | None:
    """Return the pid of a team's running orchestrator; None if it does not run."""
    return holder_of(paths.team_dir(slug) / FILE)


def socket_name(slug: str) -> str:
    """Return the name of the Unix socket on which a team's orchestrator takes requests."""
    return f"team-{slug}"


def ask_orchestrator(
    slug: str, verb: str, fields: Mapping[str, object] | None = None, patience: float = PATIENCE
) -> dict[str, object]:
    """Send a request to a team's orchestrator and return its answer.

    ``verb``: kind of the request. ``fields``: its arguments. ``patience``: how long to wait, in seconds. The command
    ends if the orchestrator refuses or does not run.
    """
    try:
        answer = call(socket_name(slug), verb, fields, patience=patience)
    except NoDaemon:
        pid = orchestrator_pid(slug)
        if pid is not None:
            fail(f"the orchestrator of {slug} (pid {pid}) does not answer; see {paths.log_file(socket_name(slug))}")
        fail(f"the team {slug} is not running: culture team up")
    except CallFailed as refused:
        fail(str(refused))
    return answer if isinstance(answer, dict) else {}


def _default_slug() -> str:
    teams = team_slugs()
    if not teams:
        fail("there is no team yet: go to a project's folder and type `culture team init`", Exit.USAGE)
    here = teams_of_folder(Path.cwd())
    if here:
        return here[0]
    if len(teams) > 1:
        fail(f"which team? Name it with --team: there are {', '.join(teams)}", Exit.USAGE)
    return teams[0]


def teams_of_folder(folder: Path) -> list[str]:
    """Return the slugs of the teams whose project contains a folder.

    For a folder in a task's worktree, this is only the team that has the task.
    """
    depths: dict[str, int] = {}
    for slug in team_slugs():
        config = load_team(paths.team_dir(slug) / TEAM).config
        trees = Worktrees(config.project_dir, config.worktrees)
        if (task := trees.task_at(folder)) is not None:
            if task.rpartition("-")[0] == slug:
                return [slug]
        elif folder.is_relative_to(trees.project):
            depths[slug] = len(trees.project.parts)
    # A project may be inside another: the inner one counts.
    return [slug for slug, depth in depths.items() if depth == max(depths.values())]


def _fail_unknown_team(slug: str) -> TeamConfig:
    teams = team_slugs()
    near = nearest(slug, teams)
    hint = (
        f"did you mean {near}?"
        if near
        else f"there are {', '.join(teams)}"
        if teams
        else "`culture team init` makes one"
    )
    fail(f"there is no team {slug}; {hint}", Exit.USAGE)
