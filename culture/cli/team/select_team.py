"""Which team a command is about, and the running orchestrator that it asks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from culture.cli.output import fail
from culture.clients.shared.skill.call import PATIENCE, CallFailed, NoDaemon, call
from culture.config import paths
from culture.config.load import load_team
from culture.config.team import TeamConfig
from culture.orchestrator.repository.locks import FILE, note_of
from culture.orchestrator.repository.worktrees import Worktrees
from culture.protocol.names import nearest
from culture.protocol.vocabulary import Exit

TEAM = "team.yaml"
ASK_THERE = "ask in the project's channel"
"""What a member of the team does in place of a command that is for people."""
Slug = Annotated[
    str | None,
    typer.Option("--team", "-t", metavar="SLUG", help="Which team.  [default: that of this folder, or the only one]"),
]


def known() -> list[str]:
    """The teams there are."""
    return sorted(file.parent.name for file in (paths.home() / "team").glob(f"*/{TEAM}"))


def chosen(slug: str | None) -> TeamConfig:
    """The team that is meant, with what its file says."""
    return load_team(paths.team_dir(slug or _here()) / TEAM).config if slug is None or slug in known() else _none(slug)


def running(slug: str) -> int | None:
    """The process of the orchestrator, if there is one."""
    return note_of(paths.team_dir(slug) / FILE)


def socket_name(slug: str) -> str:
    """What the orchestrator's socket is called, where an agent's has its nick."""
    return f"team-{slug}"


def ask(
    slug: str, verb: str, fields: Mapping[str, object] | None = None, patience: float = PATIENCE
) -> dict[str, object]:
    """What the orchestrator answers; a refusal ends the command."""
    try:
        said = call(socket_name(slug), verb, fields, patience=patience)
    except NoDaemon:
        pid = running(slug)
        if pid is not None:
            fail(f"the orchestrator of {slug} (pid {pid}) does not answer; see {paths.log_file(socket_name(slug))}")
        fail(f"the team {slug} is not running: culture team up")
    except CallFailed as refused:
        fail(str(refused))
    return said if isinstance(said, dict) else {}


def _here() -> str:
    teams = known()
    if not teams:
        fail("there is no team yet: go to a project's folder and type `culture team init`", Exit.USAGE)
    here = teams_of(Path.cwd())
    if here:
        return here[0]
    if len(teams) > 1:
        fail(f"which team? Name it with --team: there are {', '.join(teams)}", Exit.USAGE)
    return teams[0]


def teams_of(folder: Path) -> list[str]:
    """The teams of the project that a folder belongs to; of a task's worktree, the task's team alone."""
    found: dict[str, int] = {}
    for slug in known():
        config = load_team(paths.team_dir(slug) / TEAM).config
        trees = Worktrees(config.project_dir, config.worktrees)
        if (task := trees.task_at(folder)) is not None:
            if task.rpartition("-")[0] == slug:
                return [slug]
        elif folder.is_relative_to(trees.project):
            found[slug] = len(trees.project.parts)
    # A project may be inside another: the inner one counts.
    return [slug for slug, depth in found.items() if depth == max(found.values())]


def _none(slug: str) -> TeamConfig:
    teams = known()
    near = nearest(slug, teams)
    hint = (
        f"did you mean {near}?"
        if near
        else f"there are {', '.join(teams)}"
        if teams
        else "`culture team init` makes one"
    )
    fail(f"there is no team {slug}; {hint}", Exit.USAGE)
