"""``culture questions`` and ``culture answer``: what agents want to know, and a person's word on it."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from culture.cli import amounts
from culture.cli.agent_access import for_people, open_to_agents
from culture.cli.agents.asked import age, asked, by_agent, table, whole
from culture.cli.agents.known import Nick, meant
from culture.cli.agents.person import USE_IRC_CLIENT, AsNick, Person, no_server, person, present, run, speak
from culture.cli.agents.table import plain
from culture.cli.failing import fail
from culture.cli.output import as_json as in_json
from culture.config.process_owner import own_agent
from culture.protocol.names import fold
from culture.protocol.vocabulary import Exit
from culture.transport import IRCTransport, Message, NotSent

DENY = "deny"
_ID = re.compile(r"[qQ][0-9]{1,9}")
AT_ONCE = 50
"""So many questions are denied in one message."""
REPLY_PATIENCE = 10.0
_TAKEN = ("is answered", "noted for", "denied:")


@open_to_agents
def questions(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[deny] [NICK] [ID]",
            show_default=False,
            help="Only this agent's; with an ID such as q7 all of that question; with deny they are denied.",
        ),
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="Those of all agents, as without NICK.")] = False,
    closed: Annotated[bool, typer.Option("--closed", help="Also those that were closed last.")] = False,
    older: Annotated[
        float | None,
        typer.Option("--older", metavar="AGE", parser=amounts.option(amounts.duration), help="Only those older: 1h."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything there is to know, for programs.")] = False,
    nick: AsNick = None,
) -> None:
    """Show the questions that agents wait for an answer to, the oldest first.

    ``culture questions q7`` shows all of a question: the whole command that
    needs permission, or the whole change of a file. ``culture questions deny
    --older 1h`` denies those that have been there so long, as yourself; it
    needs --older, a NICK or --all. Where no server answers, the exit code is 1,
    and what agents wrote down before is shown.
    """
    words = list(what or ())
    denies = words[:1] == [DENY]
    names = words[1:] if denies else words
    ids = [word.lower() for word in names if _ID.fullmatch(word)]
    names = [word for word in names if not _ID.fullmatch(word)]
    if len(ids) > 1 or (ids and denies):
        fail("say one question" if not denies else "say culture answer NICK ID no", Exit.USAGE)
    if len(names) > 1 or (names and everyone):
        fail("say one agent, or --all", Exit.USAGE)
    if denies and not (names or everyone or older is not None):
        fail("this would deny everything: say --older, a NICK or --all", Exit.USAGE)
    # An agent is refused before anything else.
    who = person(nick) if denies else None
    now = datetime.now(UTC)
    found = asked(names[0] if names else None, closed=bool(ids) or (closed and not denies))
    if ids and not (found := _those(found, ids[0])):
        fail(f"{names[0] if names else 'nobody'} has asked no question {ids[0]} that is still known", Exit.FAILED)
    chosen = [each for each in found if older is None or age(each, now) > older]
    if who is not None:
        _deny(who, by_agent(chosen))
    elif as_json:
        typer.echo(in_json(chosen))
    elif chosen:
        typer.echo("\n\n".join(whole(each, now) for each in chosen) if ids else table(chosen, now))
    unreachable = no_server() if who is None and own_agent() is None else None
    if unreachable is not None:
        fail(f"{unreachable}; agents get no answer until then" if chosen else unreachable)
    if who is None and not chosen and not as_json:
        typer.echo("No agent waits for an answer.")


def _those(found: Sequence[dict[str, Any]], id: str) -> list[dict[str, Any]]:
    """The questions of this id; of several agents those that are open, where there are any."""
    named = [each for each in found if each["id"] == id]
    return [each for each in named if each["answer"] is None] or named


@for_people(USE_IRC_CLIENT)
def answer(
    agent: Nick,
    question: Annotated[str, typer.Argument(metavar="ID", show_default=False, help="The question, such as q7.")],
    text: Annotated[
        list[str],
        typer.Argument(metavar="TEXT", show_default=False, help="Your answer: yes, no, abort, or what it asks for."),
    ],
    nick: AsNick = None,
) -> None:
    """Answer a question of an agent, as yourself.

    It goes to the agent as a private message of yours, and counts as one. The
    exit code is 4 when it does not count, and the agent's daemon says why; it
    is 1 when the daemon says nothing, as it may not run: then it reads your
    answer when it is there again.
    """
    if not (question[:1] in "qQ" and question[1:].isdecimal()):
        fail(f"{question!r} is not the id of a question, such as q7", Exit.USAGE)
    words = " ".join(text).encode("utf-8", "replace").decode().strip()
    if not words:
        fail("there is nothing to say", Exit.USAGE)
    who, agent = person(nick), meant(agent)
    (said,) = run(_tell(who, agent, [f"{question.lower()} {words}"]))
    _show(agent, said)
    if said is None:
        raise typer.Exit(Exit.FAILED)
    if not any(word in said for word in _TAKEN):
        raise typer.Exit(Exit.DENIED)


def _deny(who: Person, wanted: Mapping[str, Sequence[str]]) -> None:
    if not wanted:
        typer.echo("There is nothing to deny.")
    failed = False
    for agent, ids in wanted.items():
        parts = [ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE)]
        for said in run(_tell(who, agent, [f"{DENY} {' '.join(part)}" for part in parts])):
            _show(agent, said)
            failed |= said is not None and not any(word in said for word in _TAKEN)
    if failed:
        raise typer.Exit(Exit.DENIED)


def _show(agent: str, said: str | None) -> None:
    if said is None:
        typer.echo(
            f"{agent} does not confirm it: it took it for a question back, or it is not there and reads it later. "
            f"`culture status {agent}` tells more.",
            err=True,
        )
    else:
        typer.echo(f"{agent}: {plain(said)}")


async def _tell(who: Person, agent: str, texts: Sequence[str]) -> list[str | None]:
    """Say these things to the agent one by one; what its daemon says to each, None when it says nothing."""
    heard: asyncio.Queue[Message] = asyncio.Queue()
    async with present(who, heard.put_nowait) as transport:
        return [await _told(transport, heard, agent, text) for text in texts]


async def _told(transport: IRCTransport, heard: "asyncio.Queue[Message]", agent: str, text: str) -> str | None:
    try:
        await speak(transport, agent, text)
    except NotSent as refusal:
        # It cannot be reached, which is no denial.
        raise NotSent(refusal.reason) from None
    with suppress(TimeoutError):
        async with asyncio.timeout(REPLY_PATIENCE):
            while True:
                message = await heard.get()
                if message.notice and not message.missed and fold(message.sender) == fold(agent):
                    return message.text
    return None
