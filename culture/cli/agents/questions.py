"""``culture questions`` and ``culture answer``: lists, answers and denies agents' questions."""

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
from culture.cli.agents.irc_session import (
    USE_IRC_CLIENT,
    AsNick,
    IrcPerson,
    connected,
    current_person,
    run,
    send_message,
    unreachable_reason,
)
from culture.cli.agents.select_agents import Nick, load, resolve_nick, select_nicks
from culture.cli.output import as_json as in_json
from culture.cli.output import clean, fail, one_line
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


def collect_questions(nick: str | None, *, closed: bool) -> list[dict[str, Any]]:
    """Return the questions of one agent (None: of all), oldest first, as dicts.

    Each dict has the nick of the agent. ``closed``: include closed questions.
    """
    try:
        config = load()
        trust = {agent.nick: (config.agent(agent.nick) or agent).trust for agent in config.agents}
    except ConfigError:
        trust = {}
    names = list(dict.fromkeys([*trust, *pidfile.all_running()]))
    if nick is not None:
        names = select_nicks(names, [nick], everyone=False)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = pool.map(lambda name: _questions_of(name, trust.get(name), closed=closed), names)
        return sorted((each for several in results for each in several), key=lambda each: str(each["asked"]))


def _questions_of(nick: str, trust: TrustConfig | None, *, closed: bool) -> list[dict[str, Any]]:
    if pidfile.running(nick) is not None:
        try:
            answer = call(nick, "questions", {"closed": closed}, patience=PATIENCE)
        except CallFailed:
            pass
        else:
            return [{"nick": nick, **each} for each in answer["questions"]] if isinstance(answer, dict) else []
    return _stored_questions(nick, trust, closed=closed)


def _stored_questions(nick: str, trust: TrustConfig | None, *, closed: bool) -> list[dict[str, Any]]:
    file = paths.inbox_file(nick)
    if not file.exists():
        return []
    # Needed only if the daemon does not run; it loads much.
    from culture.clients.shared.questions.rows import as_data, read_questions
    from culture.clients.shared.trust import rules, who_may

    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=PATIENCE)) as records:
        try:
            questions = read_questions(records.execute, closed=closed)
            data = as_data(questions, records.execute)
        except sqlite3.OperationalError:
            # The agent has never asked.
            return []
    who = [who_may(rules(trust, each.tool), each.electorate) for each in questions]
    return [{"nick": nick, **each, "who": may} for each, may in zip(data, who, strict=True)]


def age_of(question: dict[str, Any], now: datetime) -> float:
    """Return the seconds from the time at which a question was asked until ``now``."""
    return (now - datetime.fromisoformat(question["asked"])).total_seconds()


def render_table(questions: Sequence[dict[str, Any]], now: datetime) -> str:
    """Return the questions as a table with one line each."""
    rows = [_HEADINGS, *(tuple(map(one_line, _row(each, now))) for each in questions)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _row(question: dict[str, Any], now: datetime) -> tuple[str, ...]:
    left = (datetime.fromisoformat(question["deadline"]) - now).total_seconds()
    end = question["answer"]
    return (
        question["nick"],
        question["id"],
        format_span(age_of(question, now)),
        end["outcome"].lower().replace("_", " ") if end else format_span(left) if left > 0 else "over",
        question["place"],
        _answered_by(end) if end else question["who"],
        one_line(question["text"], _LONGEST_TEXT),
    )


def render_question(question: dict[str, Any], now: datetime) -> str:
    """Return one question as text, with all that a person should read before answering it."""
    nick, id, end = one_line(question["nick"]), question["id"], question["answer"]
    left = (datetime.fromisoformat(question["deadline"]) - now).total_seconds()
    when = f"asked {format_span(age_of(question, now))} ago in {one_line(question['place'])}"
    state = (
        f"{one_line(end['outcome'].lower())} by {one_line(_answered_by(end))}" if end else f"{format_span(left)} left"
    )
    words = "/".join(map(one_line, question["options"])) or "TEXT"
    rest = f"May answer: {one_line(question['who'])}\nAnswer with: culture answer {nick} {id} {words}"
    parts = [f"{nick} {id}, {when}, {state}", *([f'Task: "{one_line(question["task"])}"'] if question["task"] else [])]
    if end and end.get("verified") in (False, "unknown") and end.get("verified_why"):
        parts.append(f"{'Not verified' if end['verified'] is False else 'Unverified'}: {one_line(end['verified_why'])}")
    parts += [f"  {line}" for line in map(one_line, question["text"].split("\n"))]
    # An older daemon sends no detail.
    parts += [f"  {clean(line)}" for line in (question.get("detail") or "").split("\n") if line]
    return "\n".join([*parts, *([] if end else [rest])])


def _answered_by(answer: dict[str, Any]) -> str:
    """Return who gave an answer, and whether the server verified it, as text; "-" if unknown."""
    if not answer["by"]:
        return "-"
    verdict = {True: ", verified", False: ", NOT verified", "unknown": ", unverified"}.get(
        answer.get("verified", ""), ""
    )
    return f"{answer['by']}{verdict}"


def format_span(seconds: float) -> str:
    """Format seconds in the largest unit that fits: ``45s``, ``12m``, ``3h`` or ``2d``."""
    for unit, letter in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if seconds >= unit:
            return f"{seconds // unit:.0f}{letter}"
    return f"{max(seconds, 0):.0f}s"


def group_by_agent(questions: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the ids of questions, grouped by the nick of the agent that asked them."""
    groups: dict[str, list[str]] = {}
    for each in questions:
        groups.setdefault(each["nick"], []).append(each["id"])
    return groups


DENY = "deny"
_ID = re.compile(r"[qQ][0-9]{1,9}")
AT_ONCE = 50
"""Number of questions that one message denies."""
REPLY_PATIENCE = 10.0
_TAKEN = ("is answered", "noted for", "denied:")


@open_to_agents
def questions(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[deny] [NICK] [ID]",
            show_default=False,
            help="NICK: only this agent's. ID such as q7: that question in full. deny: deny them.",
        ),
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="Of all agents; also the default without NICK.")] = False,
    closed: Annotated[bool, typer.Option("--closed", help="Include recently closed questions.")] = False,
    older: Annotated[
        float | None,
        typer.Option(
            "--older",
            metavar="AGE",
            parser=humanize.parser(humanize.parse_age),
            help="Only questions older than this, for example 1h.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all fields as JSON.")] = False,
    nick: AsNick = None,
) -> None:
    """List the questions that agents wait for an answer to, oldest first.

    `culture questions q7` shows one question in full: the whole command that needs permission, or the whole change
    of a file. `culture questions deny --older 1h` denies those that are older, as yourself; it needs --older, a
    NICK or --all. If no server answers, the exit code is 1, and the questions that agents stored before are shown.
    """
    words = list(what or ())
    denies = words[:1] == [DENY]
    names = words[1:] if denies else words
    ids = [word.lower() for word in names if _ID.fullmatch(word)]
    names = [word for word in names if not _ID.fullmatch(word)]
    if len(ids) > 1 or (ids and denies):
        fail(
            "name one question" if not denies else "to deny one question, type `culture answer NICK ID no`", Exit.USAGE
        )
    if len(names) > 1 or (names and everyone):
        fail("name one agent, or use --all", Exit.USAGE)
    if denies and not (names or everyone or older is not None):
        fail("this would deny everything: add --older, a NICK or --all", Exit.USAGE)
    # Refuse an agent before anything else.
    who = current_person(nick) if denies else None
    now = datetime.now(UTC)
    matches = collect_questions(names[0] if names else None, closed=bool(ids) or (closed and not denies))
    if ids and not (matches := _with_id(matches, ids[0])):
        fail(f"{names[0] if names else 'nobody'} has no question {ids[0]} that is still stored", Exit.FAILED)
    selected = [each for each in matches if older is None or age_of(each, now) > older]
    if who is not None:
        _deny(who, group_by_agent(selected))
    elif as_json:
        typer.echo(in_json(selected))
    elif selected:
        typer.echo("\n\n".join(render_question(each, now) for each in selected) if ids else render_table(selected, now))
    unreachable = unreachable_reason() if who is None and own_agent() is None else None
    if unreachable is not None:
        fail(f"{unreachable}; agents get no answer until then" if selected else unreachable)
    if who is None and not selected and not as_json:
        typer.echo("No agent waits for an answer.")


def _with_id(questions: Sequence[dict[str, Any]], id: str) -> list[dict[str, Any]]:
    """Return the questions with this id: the open ones, or if none is open, the closed ones.

    Several agents may have used the same id.
    """
    named = [each for each in questions if each["id"] == id]
    return [each for each in named if each["answer"] is None] or named


@for_people(USE_IRC_CLIENT)
def answer(
    agent: Nick,
    question: Annotated[str, typer.Argument(metavar="ID", show_default=False, help="Id of the question, such as q7.")],
    text: Annotated[
        list[str],
        typer.Argument(metavar="TEXT", show_default=False, help="Your answer: yes, no, abort, or what it asks for."),
    ],
    nick: AsNick = None,
) -> None:
    """Answer a question of an agent, as yourself.

    The answer is sent to the agent as a private message from you. The exit code is 4 when the daemon does not accept
    it, and says why. It is 1 when the daemon does not reply, because it may not run; then it reads your answer at its
    next start.
    """
    if not (question[:1] in "qQ" and question[1:].isdecimal()):
        fail(f"{question!r} is not the id of a question, such as q7", Exit.USAGE)
    words = " ".join(text).encode("utf-8", "replace").decode().strip()
    if not words:
        fail("the message is empty", Exit.USAGE)
    who, agent = current_person(nick), resolve_nick(agent)
    (reply,) = run(_send_all(who, agent, [f"{question.lower()} {words}"]))
    _show(agent, reply)
    if reply is None:
        raise typer.Exit(Exit.FAILED)
    if not any(word in reply for word in _TAKEN):
        raise typer.Exit(Exit.DENIED)


def _deny(who: IrcPerson, ids_by_agent: Mapping[str, Sequence[str]]) -> None:
    if not ids_by_agent:
        typer.echo("There is nothing to deny.")
    failed = False
    for agent, ids in ids_by_agent.items():
        parts = [ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE)]
        for reply in run(_send_all(who, agent, [f"{DENY} {' '.join(part)}" for part in parts])):
            _show(agent, reply)
            failed |= reply is not None and not any(word in reply for word in _TAKEN)
    if failed:
        raise typer.Exit(Exit.DENIED)


def _show(agent: str, reply: str | None) -> None:
    if reply is None:
        typer.echo(
            f"{agent} did not confirm. It may be offline, and reads your answer when it is back; or the question needs "
            f"another answer. Type `culture status {agent}` and `culture questions {agent}`.",
            err=True,
        )
    else:
        typer.echo(f"{agent}: {one_line(reply)}")


async def _send_all(who: IrcPerson, agent: str, texts: Sequence[str]) -> list[str | None]:
    """Send answers to questions to an agent as private messages; return the daemon's replies.

    ``who``: the person who answers. The reply to a text is None if none came.
    """
    messages: asyncio.Queue[Message] = asyncio.Queue()
    async with connected(who, messages.put_nowait) as transport:
        return [await _send_one(transport, messages, agent, text) for text in texts]


async def _send_one(transport: IRCTransport, messages: "asyncio.Queue[Message]", agent: str, text: str) -> str | None:
    try:
        await send_message(transport, agent, text)
    except NotSent as refusal:
        # Not reachable, which is no denial.
        raise NotSent(refusal.reason) from None
    with suppress(TimeoutError):
        async with asyncio.timeout(REPLY_PATIENCE):
            while True:
                message = await messages.get()
                if message.notice and not message.missed and fold(message.sender) == fold(agent):
                    return message.text
    return None
