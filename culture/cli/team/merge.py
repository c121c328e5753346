"""``culture team diff`` and ``culture team merge``: people look, and people merge."""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, TypeVar

import typer

from culture.cli import output
from culture.cli.agent_access import for_people, open_to_agents
from culture.cli.output import fail
from culture.cli.team.select_team import ASK_THERE, Slug, chosen
from culture.config import paths
from culture.config.team import TeamConfig
from culture.lib.git import GitFailed
from culture.lib.git_identity import ADDRESS, TEAM
from culture.orchestrator.journal.state import TaskStage
from culture.orchestrator.journal.store import look
from culture.orchestrator.repository import merge as branch_merge
from culture.orchestrator.repository.merge import Merged, NotMerged
from culture.orchestrator.repository.worktrees import Worktrees
from culture.protocol.vocabulary import Exit

TaskId = Annotated[str, typer.Argument(metavar="TASK", show_default=False, help="As in demo-1.")]
Result = TypeVar("Result")


@open_to_agents
def diff(
    id: TaskId,
    slug: Slug = None,
    whole: Annotated[bool, typer.Option("--patch", "-p", help="The change itself, not only which files.")] = False,
) -> None:
    """Show what a task has changed."""
    config = chosen(slug)
    typer.echo(output.shown(_done(_shown(config, id, whole))), nl=False)


@for_people(ASK_THERE)
def merge(
    id: TaskId,
    slug: Slug = None,
    force: Annotated[bool, typer.Option("--force", help="Also a task that is not done.")] = False,
    message: Annotated[str | None, typer.Option("--message", "-m", metavar="TEXT", help="Of the commit.")] = None,
) -> None:
    """Merge a task's branch into the project's main branch.

    Refused where you have edits of your own, or where both changed the same lines.
    """
    config = chosen(slug)
    task = look(paths.team_dir(config.slug)).tasks.get(id)
    if task is not None and task.stage is not TaskStage.DONE and not force:
        fail(f"{id} is {task.stage.value}, not done; --force merges what is there")
    title = " ".join(task.text.split())[:60] if task else ""
    merged = _done(_merged(config, id, message or f"Merge {id}{f': {title}' if title else ''}"))
    if merged.changed:
        typer.echo(f"{id} is in {merged.target} ({merged.commit[:12]}).")
        if merged.signed_by_us:
            typer.echo(
                f"git knows neither your name nor your address, so that the commit is signed by {TEAM} <{ADDRESS}>. "
                "To sign the next one yourself: git config --global user.name 'Your Name' && "
                "git config --global user.email you@example.org"
            )
    else:
        typer.echo(f"{merged.target} has all of {id} already.")


async def _shown(config: TeamConfig, id: str, whole: bool) -> str:
    target = await branch_merge.main_branch(config.project_dir, config.branch)
    show = branch_merge.diff if whole else branch_merge.summary
    return await show(config.project_dir, id, target)


async def _merged(config: TeamConfig, id: str, message: str) -> Merged:
    target = await branch_merge.main_branch(config.project_dir, config.branch)
    return await branch_merge.merge(Worktrees(config.project_dir, config.worktrees), id, target, message)


def _done(work: Coroutine[Any, Any, Result]) -> Result:
    try:
        return asyncio.run(work)
    except NotMerged as refused:
        fail(str(refused))
    except GitFailed as error:
        fail(str(error), Exit.FAILED)
