"""``culture team task``, ``hire``, ``retire`` and ``budget``: what a person wants of a team that is at work."""

import asyncio
from typing import Annotated

import typer

from culture.cli.agent_access import for_people, open_to_agents, refuse_agents
from culture.cli.agents.irc_session import AsNick, IrcPerson, person, present, run, within
from culture.cli.options import AsJson
from culture.cli.output import as_json as in_json
from culture.cli.output import fail
from culture.cli.progress import elapsing
from culture.cli.team.select_team import ASK_THERE, Slug, ask, chosen
from culture.config import paths
from culture.config.team import ROLES, TeamConfig
from culture.orchestrator.budget import TEAM, allowance, used
from culture.orchestrator.journal.state import TeamState
from culture.orchestrator.journal.store import look
from culture.protocol.vocabulary import ClientTag, Exit
from culture.transport import Address, Message

HIRING = 180.0
ANSWER = 60.0
Words = Annotated[list[str], typer.Argument(metavar="TEXT", show_default=False, help="What is to be done.")]


@for_people(ASK_THERE)
def task(words: Words, slug: Slug = None, nick: AsNick = None) -> None:
    """Give the team a task: says `TASK: …` in its project's channel, as you.

    Waits until the team has answered who takes it on.
    """
    config = chosen(slug)
    who, where = person(nick), config.server
    speaker = IrcPerson(Address(where.host, where.port, where.tls, where.fingerprint, where.user), who.nick)
    with elapsing("The team takes it on"):
        answer = run(_said(speaker, config.project_channel, config.standup_channel, " ".join(words)))
    typer.echo(answer or "It is said; the team has not answered yet: culture team status")


async def _said(who: IrcPerson, channel: str, standup: str, text: str) -> str:
    heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def hear(message: Message) -> None:
        heard.put_nowait((message.tags.get(ClientTag.REPLY.value, ""), message.text))

    async with present(who, hear) as irc, within(irc, channel), within(irc, standup):
        said = await irc.send_privmsg(channel, f"TASK: {text}")
        try:
            async with asyncio.timeout(ANSWER):
                while True:
                    reply, answer = await heard.get()
                    if reply and reply in said:
                        return answer
        except TimeoutError:
            return ""


@for_people(ASK_THERE)
def hire(
    role: Annotated[str, typer.Argument(metavar="ROLE", help=f"One of {', '.join(ROLES[2:])}.")],
    id: Annotated[str, typer.Argument(metavar="TASK", help="For which task, as in demo-1.")],
    words: Words,
    slug: Slug = None,
) -> None:
    """Hire a worker for a task, with these words."""
    if role not in ROLES[2:]:
        fail(f"{role!r} is no worker's role; there are {', '.join(ROLES[2:])}", Exit.USAGE)
    with elapsing(f"A {role} comes"):
        said = ask(
            chosen(slug).slug,
            "hire",
            {"role": role, "task": id, "text": " ".join(words), "by": "a person"},
            patience=HIRING,
        )
    typer.echo(f"{said.get('nick')} is hired.")


@for_people(ASK_THERE)
def retire(
    who: Annotated[str, typer.Argument(metavar="NAME", help="The member, by name or nick.")], slug: Slug = None
) -> None:
    """Let a member go; what they have not committed stays in the worktree."""
    with elapsing(f"{who} goes"):
        said = ask(chosen(slug).slug, "retire", {"who": who}, patience=HIRING)
    typer.echo(f"{said.get('nick')} has left the team.")


@open_to_agents
def budget(
    id: Annotated[str, typer.Argument(metavar="TASK", help="A task; without it the team.")] = TEAM,
    usd: Annotated[
        float | None, typer.Option("--usd", min=0, metavar="N", help="Allow so many dollars in all.")
    ] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", min=0, metavar="N", help="Allow so many tokens.")] = None,
    slug: Slug = None,
    as_json: AsJson = False,
) -> None:
    """Show what was spent and what may be; with --usd or --tokens allow more or less."""
    config = chosen(slug)
    if usd is not None or tokens is not None:
        refuse_agents(ASK_THERE)
        ask(config.slug, "budget", {"whose": id, "usd": usd, "tokens": tokens})
    state = look(paths.team_dir(config.slug))
    if id != TEAM and id not in state.tasks:
        fail(f"there is no task {id}: culture team status", Exit.USAGE)
    whose = (TEAM, *state.tasks) if id == TEAM else (id,)
    if as_json:
        typer.echo(in_json([_purse(config, state, each) for each in whose]))
        return
    for each in whose:
        (spent_usd, spent_tokens), (most_usd, most_tokens) = used(state, each), allowance(config, state, each)
        limits = [
            *([f"${most_usd:.2f}"] if most_usd is not None else []),
            *([f"{most_tokens} tokens"] if most_tokens is not None else []),
        ]
        parked = "; it is spent, nobody works on it" if each in state.parked else ""
        may = f"may use {' and '.join(limits)}" if limits else "has no limit"
        typer.echo(f"{each}: ${spent_usd:.2f} and {spent_tokens} tokens used; {may}{parked}")


def _purse(config: TeamConfig, state: TeamState, whose: str) -> dict[str, object]:
    (usd, tokens), (most_usd, most_tokens) = used(state, whose), allowance(config, state, whose)
    return {
        "whose": whose,
        "usd": usd,
        "tokens": tokens,
        "most_usd": most_usd,
        "most_tokens": most_tokens,
        "parked": whose in state.parked,
    }
