"""``culture trace``: the story of one message, with times and servers, and what it waits for."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from culture.cli.agent_access import for_people
from culture.cli.agents.agent_report import STOPPED
from culture.cli.agents.irc_session import USE_IRC_CLIENT, AsNick, IrcPerson, person, present, run, within
from culture.cli.agents.report_table import plain
from culture.cli.output import as_json as in_json
from culture.cli.output import fail
from culture.ledger_views.ledger import LedgerFact, facts, online
from culture.protocol.mentions import may_mention, mentions
from culture.protocol.message import Message as Line
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import AgentState, FactKind, Receipt, Tag
from culture.transport import IRCTransport

_LONGEST_TEXT = 60
_MOST_PLACES = "200"
_MOST_AGENTS = "limit=1000"
_PAUSES = (0.5, 1.0, 2.0)
"""Seconds between two tries."""
_STEPS = (Receipt.DELIVERED, Receipt.INJECTED, Receipt.ANSWERED)


@dataclass(frozen=True, slots=True)
class TracedMessage:
    """The message itself, as the server's history has it."""

    at: str
    sender: str
    place: str
    text: str
    called: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TraceStep:
    """How far the message came, when, with whom and on which server."""

    state: str
    at: str
    by: str
    server: str


class NotReadable(Exception):
    """The server refuses to look in a place, and says why: nothing tells whether the message is there."""


@dataclass(frozen=True, slots=True)
class Story:
    """What became of a message; ``waits`` says what is missing, for each whom it was for."""

    msgid: str
    said: TracedMessage | None
    steps: tuple[TraceStep, ...]
    waits: Mapping[str, str]


@for_people(USE_IRC_CLIENT)
def trace(
    msgid: Annotated[str, typer.Argument(metavar="MSGID", show_default=False, help="The id of the message.")],
    place: Annotated[
        str | None, typer.Option("--in", metavar="PLACE", help="Where it was said, if you are not in that channel.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same for programs.")] = False,
    nick: AsNick = None,
) -> None:
    """Tell what became of a message: stored, delivered, injected, answered.

    The times and servers come from the ledger, the message itself from the
    history, as far as you may read it. The exit code is 1 when nothing is
    known of it.
    """
    story = run(_story(person(nick), msgid, place))
    if story.said is None and not story.steps:
        fail(f"nothing is known of {msgid}, or it is not for you to read; --in says where to look")
    typer.echo(in_json(_data(story)) if as_json else shown(story))
    if story.said is None:
        typer.echo("What was said is not found where you are; --in '#channel' says where to look.", err=True)


async def _story(who: IrcPerson, msgid: str, place: str | None) -> Story:
    async with present(who) as transport:
        receipts = await facts(transport, FactKind.RECEIPT, "*", f"key={msgid}")
        if place is not None:
            async with within(transport, place):
                try:
                    said = await _find(transport, place, msgid)
                except NotReadable as refusal:
                    fail(f"the server does not look in {place} for you: {refusal}")
        else:
            said = await _find_anywhere(transport, msgid)
        waits: dict[str, str] = {}
        told = {fold(fact.nick): fact.nick for fact in receipts}
        if said is not None:
            said = replace(said, called=await _called(transport, said, told))
        for nick in {**{fold(each): each for each in (said.called if said else ())}, **told}.values():
            waits[nick] = await _waits(transport, nick, receipts)
        server = transport.view.server
    return story(msgid, server, said, receipts, {nick: why for nick, why in waits.items() if why})


async def _called(transport: IRCTransport, said: TracedMessage, told: Mapping[str, str]) -> tuple[str, ...]:
    """Whom a message is for: those of the channel whom it calls, and agents who were away when it was said."""
    if not (is_channel(said.place) and may_mention(said.text)):
        return said.called
    agents = {fold(fact.nick): fact.nick for fact in await facts(transport, FactKind.STATE, "*", _MOST_AGENTS)}
    named = [nick for nick in mentions(said.text, agents.values()) if fold(nick) in fold(said.text)]
    further = [nick for nick in named if fold(nick) not in map(fold, said.called)]
    away = {fold(nick) for nick in further} - await online(transport, further) if further else set()
    return (*said.called, *(nick for nick in further if fold(nick) in away or fold(nick) in told))


def story(
    msgid: str, server: str, said: TracedMessage | None, receipts: Sequence[LedgerFact], waits: Mapping[str, str]
) -> Story:
    """Put together what is known."""
    steps = []
    if said is not None:
        steps += [TraceStep("said", said.at, said.sender, msgid.partition(".")[0])]
        steps += [TraceStep(Receipt.STORED.value, "", "", server)]
    order = [step.value for step in _STEPS]
    known = [fact for fact in receipts if fact.value.get("state") in order]
    for fact in sorted(known, key=lambda fact: (fold(fact.nick), order.index(fact.value["state"]))):
        at = fact.at.astimezone(UTC).isoformat(timespec="milliseconds")
        steps.append(TraceStep(fact.value["state"], at, fact.nick, fact.server))
    return Story(msgid, said, tuple(steps), waits)


async def _waits(transport: IRCTransport, nick: str, receipts: Sequence[LedgerFact]) -> str:
    """What is missing with one of those whom the message is for; nothing where it is answered."""
    reached = {str(fact.value.get("state")) for fact in receipts if fold(fact.nick) == fold(nick)}
    missing = next(
        (step for step in _STEPS if step.value not in reached and Receipt.ANSWERED.value not in reached), None
    )
    if missing is None:
        return ""
    states = await facts(transport, FactKind.STATE, nick)
    is_here = fold(nick) in await online(transport, [nick])
    return because(missing, states[-1].value if states else None, is_here)


def because(missing: Receipt, state: Mapping[str, Any] | None, is_here: bool) -> str:
    """In words, what has to happen first."""
    if state is None:
        who = "is here" if is_here else "is not on the mesh"
        return f"{who} and does not say what becomes of messages"
    doing, task = str(state.get("state", "?")), f" on {state['task']!r}" if state.get("task") else ""
    if not is_here or doing == STOPPED:
        return f"waits to be {missing.value}: not connected" + (", stopped" if doing == STOPPED else f", last {doing}")
    match doing:
        case AgentState.PAUSED | AgentState.PARKED:
            return f"waits to be {missing.value}: {doing} until somebody says resume"
        case AgentState.CRASHED:
            return f"waits to be {missing.value}: starting again after a crash"
        case AgentState.WORKING | AgentState.ASKING:
            what = "working" if doing == AgentState.WORKING else "waiting for an answer to a question"
            return f"waits to be {missing.value}: {what}{task}"
    return f"waits to be {missing.value}"


async def _find_anywhere(transport: IRCTransport, msgid: str) -> TracedMessage | None:
    """Look where the person is, and where they talked in private."""
    places = dict.fromkeys(transport.channels)
    for line in await _targets(transport):
        if line.verb == "CHATHISTORY" and len(line.params) > 1:
            places[line.params[1]] = None
    refused = []
    for place in places:
        try:
            if (said := await _find(transport, place, msgid)) is not None:
                return said
        except NotReadable:
            refused.append(place)
    if refused:
        typer.echo(f"Not looked in {', '.join(refused)}: the server refuses it.", err=True)
    return None


async def _targets(transport: IRCTransport) -> Sequence[Line]:
    """Where the person talked."""
    window = ("timestamp=1970-01-02T00:00:00.000Z", "timestamp=2999-01-01T00:00:00.000Z")
    return await _ask(transport, "TARGETS", *window, _MOST_PLACES)


async def _ask(transport: IRCTransport, *words: str) -> Sequence[Line]:
    """The answer of a server that may be too busy to look: it is asked again some times.

    A message that is not there is an answer: the server names it.
    """
    for pause in (*_PAUSES, None):
        lines = await transport.request("CHATHISTORY", *words)
        errors = [line.params for line in lines if line.verb == "FAIL" and "MESSAGE_ERROR" in line.params]
        if all(any(word.startswith("msgid=") for word in error) for error in errors):
            return lines
        if pause is not None:
            await asyncio.sleep(pause)
    fail("the server cannot read its history at present; try again in a moment, or say with --in where to look")


async def _find(transport: IRCTransport, place: str, msgid: str) -> TracedMessage | None:
    """The message in this place; None where it is not there. NotReadable where the server does not say."""
    lines = await _ask(transport, "AROUND", place, f"msgid={msgid}", "1")
    refusal = next((line for line in lines if line.verb == "FAIL" and "MESSAGE_ERROR" not in line.params), None)
    if refusal is not None:
        raise NotReadable(refusal.params[-1])
    found = next((line for line in lines if line.tags.get("msgid") == msgid and line.params), None)
    if found is None:
        return None
    text = next((line.params[-1] for line in lines if line.verb in ("PRIVMSG", "NOTICE")), "")
    return _said(found, place, text)


def _said(line: Line, place: str, text: str) -> TracedMessage:
    called = tuple(filter(None, line.tags.get(Tag.MENTIONS.value, "").split(",")))
    target = line.params[1 if line.verb == "BATCH" and len(line.params) > 2 else 0].lstrip("@+")
    if line.verb != "BATCH" and not is_channel(target):
        called = (target,)
    return TracedMessage(line.tags.get("time", ""), line.source.partition("!")[0], place, text, called)


def shown(story: Story) -> str:
    """The story for people, in the machine's own time."""
    lines = [story.msgid]
    if story.said is not None:
        lines = [f"{story.msgid}  {story.said.place}  <{story.said.sender}> {plain(story.said.text, _LONGEST_TEXT)}"]
    lines += [f"  {_moment(step.at):23}  {step.state:9}  {step.by or '-'}  on {step.server}" for step in story.steps]
    lines += [f"  {nick} {why}" for nick, why in story.waits.items()]
    return "\n".join(map(plain, lines))


def _moment(at: str) -> str:
    if not at:
        return ""
    local = datetime.fromisoformat(at).astimezone()
    return local.strftime("%Y-%m-%d %H:%M:%S.") + f"{local.microsecond // 1000:03}"


def _data(story: Story) -> dict[str, Any]:
    said = story.said
    return {
        "msgid": story.msgid,
        "said": None if said is None else _said_data(said),
        "steps": [
            {"state": step.state, "at": step.at or None, "by": step.by, "server": step.server} for step in story.steps
        ],
        "waits": dict(story.waits),
    }


def _said_data(said: TracedMessage) -> dict[str, Any]:
    return {"at": said.at, "by": said.sender, "place": said.place, "to": said.called, "text": said.text}
