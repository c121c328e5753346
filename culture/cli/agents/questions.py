"""``culture questions`` and ``culture answer``: what agents want to know, and a person's word on it."""

import asyncio
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from culture.cli import humanize
from culture.cli.agent_access import for_people, open_to_agents
from culture.cli.agents.irc_session import USE_IRC_CLIENT, AsNick, IrcPerson, no_server, person, present, run, speak
from culture.cli.agents.report_table import plain
from culture.cli.agents.select_agents import Nick, load, meant, picked
from culture.cli.output import as_json as in_json
from culture.cli.output import fail, shown
from culture.clients.shared import pidfile
from culture.clients.shared.skill.call import CallFailed, call
from culture.config import paths
from culture.config.agents import TrustConfig
from culture.config.errors import ConfigError
from culture.config.process_owner import own_agent
from culture.protocol.names import fold
from culture.protocol.vocabulary import Exit
from culture.transport import IRCTransport, Message, NotSent

PATIENCE = 5.0
_AT_ONCE = 16
_LONGEST_TEXT = 60
_HEADINGS = ("AGENT", "ID", "AGE", "LEFT", "WHERE", "WHO MAY ANSWER", "QUESTION")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def asked(nick: str | None, *, closed: bool) -> list[dict[str, Any]]:
    """The questions of all agents or of one, the oldest first, each with the agent's nick."""
    try:
        config = load()
        trust = {agent.nick: (config.agent(agent.nick) or agent).trust for agent in config.agents}
    except ConfigError:
        trust = {}
    names = list(dict.fromkeys([*trust, *pidfile.all_running()]))
    if nick is not None:
        names = picked(names, [nick], everyone=False)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda name: _of(name, trust.get(name), closed=closed), names)
        return sorted((each for several in found for each in several), key=lambda each: str(each["asked"]))


def _of(nick: str, trust: TrustConfig | None, *, closed: bool) -> list[dict[str, Any]]:
    if pidfile.running(nick) is not None:
        try:
            said = call(nick, "questions", {"closed": closed}, patience=PATIENCE)
        except CallFailed:
            pass
        else:
            return [{"nick": nick, **each} for each in said["questions"]] if isinstance(said, dict) else []
    return _at_rest(nick, trust, closed=closed)


def _at_rest(nick: str, trust: TrustConfig | None, *, closed: bool) -> list[dict[str, Any]]:
    file = paths.inbox_file(nick)
    if not file.exists():
        return []
    # Of a daemon that runs none of this is needed, and it brings all that an agent works with.
    from culture.clients.shared.questions.rows import as_data, read_questions
    from culture.clients.shared.trust import rules, who_may

    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=PATIENCE)) as records:
        try:
            questions = read_questions(records.execute, closed=closed)
            data = as_data(questions, records.execute)
        except sqlite3.OperationalError:
            # A file of an agent that never asked.
            return []
    who = [who_may(rules(trust, each.tool), each.electorate) for each in questions]
    return [{"nick": nick, **each, "who": may} for each, may in zip(data, who, strict=True)]


def age(question: dict[str, Any], now: datetime) -> float:
    """For how many seconds it is there."""
    return (now - datetime.fromisoformat(question["asked"])).total_seconds()


def table(questions: Sequence[dict[str, Any]], now: datetime) -> str:
    """One line per question."""
    rows = [_HEADINGS, *(tuple(map(plain, _row(each, now))) for each in questions)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _row(question: dict[str, Any], now: datetime) -> tuple[str, ...]:
    left = (datetime.fromisoformat(question["deadline"]) - now).total_seconds()
    end = question["answer"]
    return (
        question["nick"],
        question["id"],
        span(age(question, now)),
        end["outcome"].lower().replace("_", " ") if end else span(left) if left > 0 else "over",
        question["place"],
        _answered_by(end) if end else question["who"],
        plain(question["text"], _LONGEST_TEXT),
    )


def whole(question: dict[str, Any], now: datetime) -> str:
    """One question with all that there is to read before it is answered."""
    nick, id, end = plain(question["nick"]), question["id"], question["answer"]
    left = (datetime.fromisoformat(question["deadline"]) - now).total_seconds()
    when = f"asked {span(age(question, now))} ago in {plain(question['place'])}"
    state = f"{plain(end['outcome'].lower())} by {plain(_answered_by(end))}" if end else f"{span(left)} left"
    words = "/".join(map(plain, question["options"])) or "TEXT"
    rest = f"May answer: {plain(question['who'])}\nAnswer with: culture answer {nick} {id} {words}"
    parts = [f"{nick} {id}, {when}, {state}", *([f'Task: "{plain(question["task"])}"'] if question["task"] else [])]
    parts += [f"  {line}" for line in map(plain, question["text"].split("\n"))]
    # An older daemon tells no detail.
    parts += [f"  {shown(line)}" for line in (question.get("detail") or "").split("\n") if line]
    return "\n".join([*parts, *([] if end else [rest])])


def _answered_by(answer: dict[str, Any]) -> str:
    """Nick that answered, with the verdict of the server on that answer."""
    if not answer["by"]:
        return "-"
    found = {True: ", verified", False: ", NOT verified", "unknown": ", unverified"}.get(answer.get("verified", ""), "")
    return f"{answer['by']}{found}"


def span(seconds: float) -> str:
    """``45s``, ``12m``, ``3h``, ``2d``."""
    for unit, letter in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if seconds >= unit:
            return f"{seconds // unit:.0f}{letter}"
    return f"{max(seconds, 0):.0f}s"


def by_agent(questions: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """The ids of the questions of each agent."""
    found: dict[str, list[str]] = {}
    for each in questions:
        found.setdefault(each["nick"], []).append(each["id"])
    return found


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
        typer.Option("--older", metavar="AGE", parser=humanize.option(humanize.duration), help="Only those older: 1h."),
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


def _deny(who: IrcPerson, wanted: Mapping[str, Sequence[str]]) -> None:
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


async def _tell(who: IrcPerson, agent: str, texts: Sequence[str]) -> list[str | None]:
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
