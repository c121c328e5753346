"""``culture team``: the group, and the commands status, task, hire, retire and budget."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from culture.cli import output
from culture.cli.agent_access import for_people, open_to_agents, refuse_agents
from culture.cli.agents.irc_session import AsNick, IrcPerson, connected, current_person, joined, run
from culture.cli.commands import Listing
from culture.cli.options import AsJson
from culture.cli.output import as_json as in_json
from culture.cli.output import fail
from culture.cli.progress import elapsing
from culture.cli.team.init import init, logins
from culture.cli.team.merge import diff, merge, rescue_group
from culture.cli.team.select_team import ASK_THERE, Slug, ask_orchestrator, orchestrator_pid, select_team
from culture.cli.team.up import down, up
from culture.clients.shared import pidfile
from culture.config import paths
from culture.config.team import ROLES, TeamConfig
from culture.orchestrator.budget import TEAM, allowance, usage_of
from culture.orchestrator.journal.state import TeamMember, TeamState, TeamTask
from culture.orchestrator.journal.store import read_state
from culture.orchestrator.repository.worktrees import Worktrees
from culture.protocol.vocabulary import ClientTag, Exit
from culture.transport import Address, Message

_TITLE = 50


@open_to_agents
def status(slug: Slug = None, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show a team: its members, its tasks, its cost. It need not be running."""
    config = select_team(slug)
    pid, state = orchestrator_pid(config.slug), read_state(paths.team_dir(config.slug))
    if as_json:
        typer.echo(output.as_json(_as_data(config.slug, pid, state)))
        return
    typer.echo(f"{config.slug}: {f'at work (pid {pid})' if pid else 'not running: culture team up'}")
    typer.echo(f"project {config.project_dir}, {config.project_channel}; ${state.usd():.2f}, {state.tokens()} tokens")
    _table([_member_row(member) for member in state.members.values()], "Members")
    _table([_task_row(task, state) for task in state.tasks.values()], "Tasks")
    _show_left(Worktrees(config.project_dir, config.worktrees), state)
    if state.parked:
        typer.echo(f"\nBudget limit reached: {', '.join(sorted(state.parked))} (culture team budget)")


def _show_left(worktrees: Worktrees, state: TeamState) -> None:
    """Print the worktrees of a team that were not removed because that could lose work."""
    left = [task for task in state.tasks.values() if task.stays and worktrees.path_of(task.id).exists()]
    if left:
        typer.echo("\nWorktrees kept until you remove them (commits stay on the branch):")
    for task in left:
        typer.echo(output.clean(f"  {task.id}: {task.stays}\n    {worktrees.removal_command(task.id)}"))


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
        typer.echo(output.clean("  " + "  ".join(map(str.ljust, row, widths)).rstrip()))


HIRING = 180.0
ANSWER = 60.0
Words = Annotated[list[str], typer.Argument(metavar="TEXT", show_default=False, help="What to do.")]


@for_people(ASK_THERE)
def task(words: Words, slug: Slug = None, nick: AsNick = None) -> None:
    """Give the team a task: send `TASK: …` to its project's channel, as you.

    The command waits until the team has answered who takes it on.
    """
    config = select_team(slug)
    who, where = current_person(nick), config.server
    speaker = IrcPerson(Address(where.host, where.port, where.tls, where.fingerprint, where.user), who.nick)
    with elapsing("Waiting for the team"):
        answer = run(_said(speaker, config.project_channel, config.standup_channel, " ".join(words)))
    typer.echo(answer or "The task was sent; the team has not answered yet: culture team status")


async def _said(who: IrcPerson, channel: str, standup: str, text: str) -> str:
    replies: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def hear(message: Message) -> None:
        replies.put_nowait((message.tags.get(ClientTag.REPLY.value, ""), message.text))

    async with connected(who, hear) as irc, joined(irc, channel), joined(irc, standup):
        msgids = await irc.send_privmsg(channel, f"TASK: {text}")
        try:
            async with asyncio.timeout(ANSWER):
                while True:
                    reply, answer = await replies.get()
                    if reply and reply in msgids:
                        return answer
        except TimeoutError:
            return ""


@for_people(ASK_THERE)
def hire(
    role: Annotated[str, typer.Argument(metavar="ROLE", help=f"One of {', '.join(ROLES[2:])}.")],
    id: Annotated[str, typer.Argument(metavar="TASK", help="Task to work on, such as demo-1.")],
    words: Words,
    slug: Slug = None,
) -> None:
    """Hire a worker for a task, with this instruction."""
    if role not in ROLES[2:]:
        fail(f"{role!r} is not a worker's role; choose one of {', '.join(ROLES[2:])}", Exit.USAGE)
    with elapsing(f"Hiring a {role}"):
        answer = ask_orchestrator(
            select_team(slug).slug,
            "hire",
            {"role": role, "task": id, "text": " ".join(words), "by": "a person"},
            patience=HIRING,
        )
    typer.echo(f"{answer.get('nick')} is hired.")


@for_people(ASK_THERE)
def retire(
    who: Annotated[str, typer.Argument(metavar="NAME", help="Name or nick of the member.")], slug: Slug = None
) -> None:
    """Remove a member from the team; uncommitted work stays in the worktree."""
    with elapsing(f"Retiring {who}"):
        answer = ask_orchestrator(select_team(slug).slug, "retire", {"who": who}, patience=HIRING)
    typer.echo(f"{answer.get('nick')} has left the team.")


@open_to_agents
def budget(
    id: Annotated[str, typer.Argument(metavar="TASK", help="A task, or the whole team.")] = TEAM,
    usd: Annotated[float | None, typer.Option("--usd", min=0, metavar="N", help="Set the limit in dollars.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", min=0, metavar="N", help="Set the limit in tokens.")] = None,
    slug: Slug = None,
    as_json: AsJson = False,
) -> None:
    """Show what was spent and the limits; with --usd or --tokens set a limit."""
    config = select_team(slug)
    if usd is not None or tokens is not None:
        refuse_agents(ASK_THERE)
        ask_orchestrator(config.slug, "budget", {"whose": id, "usd": usd, "tokens": tokens})
    state = read_state(paths.team_dir(config.slug))
    if id != TEAM and id not in state.tasks:
        fail(f"there is no task {id}: culture team status", Exit.USAGE)
    whose = (TEAM, *state.tasks) if id == TEAM else (id,)
    if as_json:
        typer.echo(in_json([_purse(config, state, each) for each in whose]))
        return
    for each in whose:
        (spent_usd, spent_tokens), (most_usd, most_tokens) = usage_of(state, each), allowance(config, state, each)
        limits = [
            *([f"${most_usd:.2f}"] if most_usd is not None else []),
            *([f"{most_tokens} tokens"] if most_tokens is not None else []),
        ]
        parked = "; the limit is reached, nobody works on it" if each in state.parked else ""
        may = f"may use {' and '.join(limits)}" if limits else "has no limit"
        typer.echo(f"{each}: ${spent_usd:.2f} and {spent_tokens} tokens used; {may}{parked}")


def _purse(config: TeamConfig, state: TeamState, whose: str) -> dict[str, object]:
    (usd, tokens), (most_usd, most_tokens) = usage_of(state, whose), allowance(config, state, whose)
    return {
        "whose": whose,
        "usd": usd,
        "tokens": tokens,
        "most_usd": most_usd,
        "most_tokens": most_tokens,
        "parked": whose in state.parked,
    }


group = typer.Typer(help="Run a team of agents on a project.", no_args_is_help=True)
for command in (init, up, down, status, task, hire, retire, budget, diff, merge, logins):
    group.command()(command)
group.add_typer(rescue_group, name="rescue", cls=Listing)
