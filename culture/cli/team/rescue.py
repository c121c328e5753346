"""``culture team rescue``: the work that was not committed when a worktree was removed."""

import asyncio
from collections.abc import Coroutine
from dataclasses import asdict
from typing import Annotated, Any, TypeVar

import typer

from culture.cli import output
from culture.cli.agent_access import for_people, open_to_agents
from culture.cli.humanize import counted, shown_moment
from culture.cli.options import AsJson
from culture.cli.output import fail
from culture.cli.team.select_team import ASK_THERE, Slug, chosen
from culture.config.team import TeamConfig
from culture.lib.git import GitFailed
from culture.orchestrator.repository.rescue_refs import Rescue, rescues
from culture.orchestrator.repository.rescue_refs import drop as drop_ref
from culture.orchestrator.repository.worktrees import RESCUES
from culture.protocol.vocabulary import Exit
from culture.server.core.ids import MICROSECONDS

group = typer.Typer(help="Work that was not committed when a task ended: list and drop it.", no_args_is_help=True)
Result = TypeVar("Result")
_MOST_SHOWN = 5


@group.command("list")
@open_to_agents
def list_rescues(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Only those of this task, as in demo-1.")] = "",
    slug: Slug = None,
    as_json: AsJson = False,
) -> None:
    """List what was kept, with the names of its files."""
    config = chosen(slug)
    found = _done(rescues(config.project_dir, task))
    if as_json:
        said = [{**asdict(each), "task": each.task, "ref": f"{RESCUES}/{each.name}"} for each in found]
        typer.echo(output.as_json(said))
        return
    for each in found:
        typer.echo(output.shown(_row(each)))
    if found:
        show = f"git -C {config.project_dir} show {RESCUES}/{found[-1].name}"
        typer.echo(output.shown(f"Look: {show}. Delete: culture team rescue drop {found[-1].name}."))
    else:
        typer.echo("Nothing is kept.")


@group.command()
@for_people(ASK_THERE)
def drop(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="As listed (demo-1/2), or a task for all of its own.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All of the project.")] = False,
    slug: Slug = None,
) -> None:
    """Delete what was kept.

    Until git prunes its objects, a commit can be had back by the id that is
    printed: git branch NAME ID.
    """
    if bool(names) == every:
        fail("name what to drop, as `culture team rescue list` shows it, or say --all", Exit.USAGE)
    config = chosen(slug)
    gone = _done(_dropped(config, names or []))
    for each in gone:
        typer.echo(f"{each.name} is dropped (it was {each.commit[:12]})")
    if not gone:
        typer.echo("Nothing was kept.")
    elif any(each.ignored for each in gone):
        typer.echo(f"To delete the contents at once: git -C {config.project_dir} gc --prune=now")


async def _dropped(config: TeamConfig, names: list[str]) -> list[Rescue]:
    found = await rescues(config.project_dir)
    known = {each.name for each in found} | {each.task for each in found}
    for name in names:
        if name not in known:
            fail(f"nothing is kept under {name}: culture team rescue list", Exit.USAGE)
    wanted = [each for each in found if not names or each.name in names or each.task in names]
    return [each for each in wanted if await drop_ref(config.project_dir, each)]


def _row(rescue: Rescue) -> str:
    files, more = ", ".join(rescue.files[:_MOST_SHOWN]), len(rescue.files) - _MOST_SHOWN
    names = f"{files}{f' and {more} more' if more > 0 else ''}" if files else "no files of its own"
    ignored = f"; {counted(len(rescue.ignored), 'file', 'files')} ignored by git" if rescue.ignored else ""
    return f"{rescue.name}  {shown_moment(rescue.time * MICROSECONDS)}  {names}{ignored}"


def _done(work: Coroutine[Any, Any, Result]) -> Result:
    try:
        return asyncio.run(work)
    except GitFailed as error:
        fail(str(error), Exit.FAILED)
