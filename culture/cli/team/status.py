"""``culture team status``: who is there, what they work on, what it has cost."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from culture.cli import output
from culture.cli.agent_access import open_to_agents
from culture.cli.team.select_team import Slug, chosen, running
from culture.clients.shared import pidfile
from culture.config import paths
from culture.orchestrator.journal.state import TeamMember, TeamState, TeamTask
from culture.orchestrator.journal.store import look
from culture.orchestrator.repository.worktrees import Worktrees

_TITLE = 50


@open_to_agents
def status(slug: Slug = None, as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Show a team: its members, its tasks, what it has spent. It need not be running."""
    config = chosen(slug)
    pid, state = running(config.slug), look(paths.team_dir(config.slug))
    if as_json:
        typer.echo(output.as_json(_as_data(config.slug, pid, state)))
        return
    typer.echo(f"{config.slug}: {f'at work (pid {pid})' if pid else 'not running: culture team up'}")
    typer.echo(f"project {config.project_dir}, {config.project_channel}; ${state.usd():.2f}, {state.tokens()} tokens")
    _table([_member_row(member) for member in state.members.values()], "Members")
    _table([_task_row(task, state) for task in state.tasks.values()], "Tasks")
    _show_left(Worktrees(config.project_dir, config.worktrees), state)
    if state.parked:
        typer.echo(f"\nThe budget is spent of: {', '.join(sorted(state.parked))} (culture team budget)")


def _show_left(worktrees: Worktrees, state: TeamState) -> None:
    """Worktrees that could not be removed without losing something: people know whether that matters."""
    left = [task for task in state.tasks.values() if task.stays and worktrees.path_of(task.id).exists()]
    if left:
        typer.echo("\nWorktrees that stay until you remove them (what is committed stays on the branch):")
    for task in left:
        typer.echo(output.shown(f"  {task.id}: {task.stays}\n    {worktrees.removal(task.id)}"))


def _as_data(slug: str, pid: int | None, state: TeamState) -> dict[str, Any]:
    return {
        "slug": slug,
        "pid": pid,
        "usd": round(state.usd(), 6),
        "tokens": state.tokens(),
        "members": [
            {
                "nick": member.nick,
                "name": member.name,
                "role": member.role,
                "task_id": member.task_id,
                "channels": list(member.channels),
                "session_id": member.session_id,
                "tokens": member.tokens,
                "cost": member.cost,
                "context_pct": member.context_pct,
                "worktree_path": member.worktree_path,
                "running": pidfile.running(member.nick) is not None,
            }
            for member in state.members.values()
        ],
        "tasks": [
            {
                "id": task.id,
                "stage": task.stage.value,
                "text": task.text,
                "by": task.by,
                "manager": task.manager,
                "branch": task.branch,
                "worktree": task.worktree,
                "said": task.said,
                "rescue": task.rescue,
                "stays": task.stays,
                "usd": round(state.task_usd(task.id), 6),
                "tokens": state.task_tokens(task.id),
            }
            for task in state.tasks.values()
        ],
        "parked": sorted(state.parked),
    }


def _member_row(member: TeamMember) -> tuple[str, ...]:
    full = "" if member.context_pct is None else f"context {member.context_pct:.0f} %"
    there = "runs" if pidfile.running(member.nick) else "not running"
    return (
        member.nick,
        member.role,
        member.task_id or "",
        there,
        f"${member.cost:.2f}",
        f"{member.tokens} tokens",
        full,
    )


def _task_row(task: TeamTask, state: TeamState) -> tuple[str, ...]:
    return (
        task.id,
        task.stage.value,
        task.manager or "nobody",
        f"${state.task_usd(task.id):.2f}",
        " ".join((task.said or task.text).split())[:_TITLE],
    )


def _table(rows: Sequence[tuple[str, ...]], title: str) -> None:
    typer.echo(f"\n{title}:{'' if rows else ' none'}")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo(output.shown("  " + "  ".join(map(str.ljust, row, widths)).rstrip()))
