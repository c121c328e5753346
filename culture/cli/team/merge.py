"""``culture team diff``, ``merge``, ``rescue``: people look at a task's work and merge it."""

import asyncio
from collections.abc import Coroutine
from dataclasses import asdict
from typing import Annotated, Any, TypeVar

import typer

from culture.cli import output
from culture.cli.agent_access import for_people, open_to_agents
from culture.cli.humanize import counted, format_time
from culture.cli.options import AsJson
from culture.cli.output import fail
from culture.cli.team.select_team import ASK_THERE, Slug, select_team
from culture.config import paths
from culture.config.team import TeamConfig
from culture.lib.git import GitFailed
from culture.lib.git_identity import ADDRESS, TEAM
from culture.orchestrator.journal.state import TaskStage
from culture.orchestrator.journal.store import read_state
from culture.orchestrator.repository import merge as branch_merge
from culture.orchestrator.repository.merge import MergeResult, NotMerged
from culture.orchestrator.repository.salvage import Rescue, rescues
from culture.orchestrator.repository.salvage import drop as drop_ref
from culture.orchestrator.repository.worktrees import RESCUES, Worktrees
from culture.protocol.vocabulary import Exit
from culture.server.core.ids import MICROSECONDS

TaskId = Annotated[str, typer.Argument(metavar="TASK", show_default=False, help="Task, such as demo-1.")]
Result = TypeVar("Result")


@open_to_agents
def diff(
    id: TaskId,
    slug: Slug = None,
    whole: Annotated[bool, typer.Option("--patch", "-p", help="Show the whole change, not only the files.")] = False,
) -> None:
    """Show what a task has changed."""
    config = select_team(slug)
    typer.echo(output.clean(_done(_shown(config, id, whole))), nl=False)


@for_people(ASK_THERE)
def merge(
    id: TaskId,
    slug: Slug = None,
    force: Annotated[bool, typer.Option("--force", help="Merge even if the task is not done.")] = False,
    message: Annotated[
        str | None, typer.Option("--message", "-m", metavar="TEXT", help="Message of the commit.")
    ] = None,
) -> None:
    """Merge the branch of a task into the project's main branch.

    It is refused if you have uncommitted edits, or if both sides changed the same lines.
    """
    config = select_team(slug)
    task = read_state(paths.team_dir(config.slug)).tasks.get(id)
    if task is not None and task.stage is not TaskStage.DONE and not force:
        fail(f"{id} is {task.stage.value}, not done; --force merges what is there")
    title = " ".join(task.text.split())[:60] if task else ""
    merged = _done(_merged(config, id, message or f"Merge {id}{f': {title}' if title else ''}"))
    if merged.changed:
        typer.echo(f"{id} is in {merged.target} ({merged.commit[:12]}).")
        if merged.signed_by_us:
            typer.echo(
                f"git knows neither your name nor your address, so the commit is by {TEAM} <{ADDRESS}>. "
                "To sign the next one yourself: git config --global user.name 'Your Name' && "
                "git config --global user.email you@example.org"
            )
    else:
        typer.echo(f"{merged.target} has all of {id} already.")


async def _shown(config: TeamConfig, id: str, whole: bool) -> str:
    target = await branch_merge.main_branch(config.project_dir, config.branch)
    show = branch_merge.diff if whole else branch_merge.summary
    return await show(config.project_dir, id, target)


async def _merged(config: TeamConfig, id: str, message: str) -> MergeResult:
    target = await branch_merge.main_branch(config.project_dir, config.branch)
    return await branch_merge.merge(Worktrees(config.project_dir, config.worktrees), id, target, message)


def _done(work: Coroutine[Any, Any, Result]) -> Result:
    try:
        return asyncio.run(work)
    except NotMerged as refused:
        fail(str(refused))
    except GitFailed as error:
        fail(str(error), Exit.FAILED)


rescue_group = typer.Typer(
    help="List and delete uncommitted work that was saved when a task ended.", no_args_is_help=True
)
_MOST_SHOWN = 5


@rescue_group.command("list")
@open_to_agents
def list_rescues(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Only of this task, such as demo-1.")] = "",
    slug: Slug = None,
    as_json: AsJson = False,
) -> None:
    """List uncommitted work that was saved when worktrees were removed."""
    config = select_team(slug)
    results = _done(rescues(config.project_dir, task))
    if as_json:
        rows = [{**asdict(each), "task": each.task, "ref": f"{RESCUES}/{each.name}"} for each in results]
        typer.echo(output.as_json(rows))
        return
    for each in results:
        typer.echo(output.clean(_row(each)))
    if results:
        show = f"git -C {config.project_dir} show {RESCUES}/{results[-1].name}"
        typer.echo(output.clean(f"Look: {show}. Delete: culture team rescue drop {results[-1].name}."))
    else:
        typer.echo("Nothing is saved.")


@rescue_group.command()
@for_people(ASK_THERE)
def drop(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Name as listed (demo-1/2), or a task for all of its work."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Delete all of the project.")] = False,
    slug: Slug = None,
) -> None:
    """Delete saved work.

    Until git prunes its objects, you can restore a commit by the printed id: git branch NAME ID.
    """
    if bool(names) == every:
        fail("name what to delete, as `culture team rescue list` shows it, or say --all", Exit.USAGE)
    config = select_team(slug)
    gone = _done(_dropped(config, names or []))
    for each in gone:
        typer.echo(f"{each.name} is deleted (it was {each.commit[:12]})")
    if not gone:
        typer.echo("Nothing was saved.")
    elif any(each.ignored for each in gone):
        typer.echo(f"To delete the contents at once: git -C {config.project_dir} gc --prune=now")


async def _dropped(config: TeamConfig, names: list[str]) -> list[Rescue]:
    results = await rescues(config.project_dir)
    known_names = {each.name for each in results} | {each.task for each in results}
    for name in names:
        if name not in known_names:
            fail(f"nothing is saved under {name}: culture team rescue list", Exit.USAGE)
    selected = [each for each in results if not names or each.name in names or each.task in names]
    return [each for each in selected if await drop_ref(config.project_dir, each)]


def _row(rescue: Rescue) -> str:
    files, more = ", ".join(rescue.files[:_MOST_SHOWN]), len(rescue.files) - _MOST_SHOWN
    names = f"{files}{f' and {more} more' if more > 0 else ''}" if files else "no files of its own"
    ignored = f"; {counted(len(rescue.ignored), 'file', 'files')} ignored by git" if rescue.ignored else ""
    return f"{rescue.name}  {format_time(rescue.time * MICROSECONDS)}  {names}{ignored}"
