"""``culture trace``: the states one message has reached, and what it waits for."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from culture.cli.agent_access import for_people
from culture.cli.agents.agent_report import STOPPED
from culture.cli.agents.irc_session import USE_IRC_CLIENT, AsNick, IrcPerson, connected, current_person, joined, run
from culture.cli.output import as_json as in_json
from culture.cli.output import fail, one_line
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
    """The message that `culture trace` is about, as the server's history has it."""

    at: str
    sender: str
    place: str
    text: str
    called: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A state that a message reached, such as ``delivered``: when, by which agent and server."""

    state: str
    at: str
    by: str
    server: str


class NotReadable(Exception):
    """The server refuses to search a channel or conversation; the message may be there or not."""


@dataclass(frozen=True, slots=True)
class Story:
    """What happened to a message: the states it reached, and why recipients have not answered.

    ``said``: the message, None if it could not be found. ``waits``: by nick, a phrase for what the recipient waits for.
    """

    msgid: str
    said: TracedMessage | None
    steps: tuple[TraceStep, ...]
    waits: Mapping[str, str]


@for_people(USE_IRC_CLIENT)
def trace(
    msgid: Annotated[str, typer.Argument(metavar="MSGID", show_default=False, help="The id of the message.")],
    place: Annotated[
        str | None,
        typer.Option("--in", metavar="PLACE", help="Channel or nick to search, if you are not in that channel."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    nick: AsNick = None,
) -> None:
    """Show what happened to a message: stored, delivered, injected, answered.

    Times and servers come from the ledger. The message itself comes from the history, if you may read it. The exit
    code is 1 when nothing is known about it.
    """
    result = run(_story(current_person(nick), msgid, place))
    if result.said is None and not result.steps:
        fail(f"nothing is known about {msgid}, or you may not read it; --in says where to look")
    typer.echo(in_json(_data(result)) if as_json else render(result))
    if result.said is None:
        typer.echo("The message was not found in your channels; --in '#channel' says where to look.", err=True)


async def _story(who: IrcPerson, msgid: str, place: str | None) -> Story:
    async with connected(who) as transport:
        receipts = await facts(transport, FactKind.RECEIPT, "*", f"key={msgid}")
        if place is not None:
            async with joined(transport, place):
                try:
                    message = await _find(transport, place, msgid)
                except NotReadable as refusal:
                    fail(f"the server does not look in {place} for you: {refusal}")
        else:
            message = await _find_anywhere(transport, msgid)
        waits: dict[str, str] = {}
        reporters = {fold(fact.nick): fact.nick for fact in receipts}
        if message is not None:
            message = replace(message, called=await _called(transport, message, reporters))
        for nick in {**{fold(each): each for each in (message.called if message else ())}, **reporters}.values():
            waits[nick] = await _waits(transport, nick, receipts)
        server = transport.view.server
    return build_story(msgid, server, message, receipts, {nick: why for nick, why in waits.items() if why})


async def _called(transport: IRCTransport, message: TracedMessage, reporters: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nicks for whom a message is.

    They are the mentioned members of the channel, and mentioned agents that were away or have sent receipts.
    ``reporters``: nicks that have sent receipts, each under its lower-case form.
    """
    if not (is_channel(message.place) and may_mention(message.text)):
        return message.called
    agents = {fold(fact.nick): fact.nick for fact in await facts(transport, FactKind.STATE, "*", _MOST_AGENTS)}
    named = [nick for nick in mentions(message.text, agents.values()) if fold(nick) in fold(message.text)]
    further = [nick for nick in named if fold(nick) not in map(fold, message.called)]
    away = {fold(nick) for nick in further} - await online(transport, further) if further else set()
    return (*message.called, *(nick for nick in further if fold(nick) in away or fold(nick) in reporters))


def build_story(
    msgid: str, server: str, message: TracedMessage | None, receipts: Sequence[LedgerFact], waits: Mapping[str, str]
) -> Story:
    """Combine a message and the receipts for it into a Story.

    ``server``: where the message was stored. ``receipts``: ledger facts. ``waits``: by nick, a phrase for what the
    recipient waits for.
    """
    steps = []
    if message is not None:
        steps += [TraceStep("said", message.at, message.sender, msgid.partition(".")[0])]
        steps += [TraceStep(Receipt.STORED.value, "", "", server)]
    order = [step.value for step in _STEPS]
    usable = [fact for fact in receipts if fact.value.get("state") in order]
    for fact in sorted(usable, key=lambda fact: (fold(fact.nick), order.index(fact.value["state"]))):
        at = fact.at.astimezone(UTC).isoformat(timespec="milliseconds")
        steps.append(TraceStep(fact.value["state"], at, fact.nick, fact.server))
    return Story(msgid, message, tuple(steps), waits)


async def _waits(transport: IRCTransport, nick: str, receipts: Sequence[LedgerFact]) -> str:
    """Return a phrase for what the recipient ``nick`` of a message waits for before it answers.

    ``receipts``: ledger facts about the message. The phrase is empty if the recipient has answered.
    """
    reached = {str(fact.value.get("state")) for fact in receipts if fold(fact.nick) == fold(nick)}
    missing = next(
        (step for step in _STEPS if step.value not in reached and Receipt.ANSWERED.value not in reached), None
    )
    if missing is None:
        return ""
    states = await facts(transport, FactKind.STATE, nick)
    is_here = fold(nick) in await online(transport, [nick])
    return describe_wait(missing, states[-1].value if states else None, is_here)


def describe_wait(missing: Receipt, state: Mapping[str, Any] | None, is_here: bool) -> str:
    """Return a phrase for what an agent waits for before it sends the receipt ``missing``.

    ``state``: the agent's last state in the ledger, None if it has none. ``is_here``: whether the agent is connected.
    """
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
    """Search the person's channels and private conversations for a message; None if not found."""
    places = dict.fromkeys(transport.channels)
    for line in await _targets(transport):
        if line.verb == "CHATHISTORY" and len(line.params) > 1:
            places[line.params[1]] = None
    refused = []
    for place in places:
        try:
            if (message := await _find(transport, place, msgid)) is not None:
                return message
        except NotReadable:
            refused.append(place)
    if refused:
        typer.echo(f"Not searched: {', '.join(refused)}; the server refuses it.", err=True)
    return None


async def _targets(transport: IRCTransport) -> Sequence[Line]:
    """Return the lines of the server's answer that name the person's private conversations."""
    window = ("timestamp=1970-01-02T00:00:00.000Z", "timestamp=2999-01-01T00:00:00.000Z")
    return await _ask(transport, "TARGETS", *window, _MOST_PLACES)


async def _ask(transport: IRCTransport, *words: str) -> Sequence[Line]:
    """Send CHATHISTORY with the parameters ``words`` and return the lines of the answer.

    It is sent again while the server is busy; the command ends if the server stays busy. An error that names the
    message id counts as an answer: the message is not there.
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
    """Return the message with this msgid if it is in the history of ``place``, else None.

    ``place``: a channel or nick. NotReadable is raised if the server refuses to search there.
    """
    lines = await _ask(transport, "AROUND", place, f"msgid={msgid}", "1")
    refusal = next((line for line in lines if line.verb == "FAIL" and "MESSAGE_ERROR" not in line.params), None)
    if refusal is not None:
        raise NotReadable(refusal.params[-1])
    line_found = next((line for line in lines if line.tags.get("msgid") == msgid and line.params), None)
    if line_found is None:
        return None
    text = next((line.params[-1] for line in lines if line.verb in ("PRIVMSG", "NOTICE")), "")
    return _traced_message(line_found, place, text)


def _traced_message(line: Line, place: str, text: str) -> TracedMessage:
    called = tuple(filter(None, line.tags.get(Tag.MENTIONS.value, "").split(",")))
    target = line.params[1 if line.verb == "BATCH" and len(line.params) > 2 else 0].lstrip("@+")
    if line.verb != "BATCH" and not is_channel(target):
        called = (target,)
    return TracedMessage(line.tags.get("time", ""), line.source.partition("!")[0], place, text, called)


def render(story: Story) -> str:
    """Return a story as text, one line for each state, with times in local time."""
    lines = [story.msgid]
    if story.said is not None:
        lines = [f"{story.msgid}  {story.said.place}  <{story.said.sender}> {one_line(story.said.text, _LONGEST_TEXT)}"]
    lines += [f"  {_moment(step.at):23}  {step.state:9}  {step.by or '-'}  on {step.server}" for step in story.steps]
    lines += [f"  {nick} {why}" for nick, why in story.waits.items()]
    return "\n".join(map(one_line, lines))


def _moment(at: str) -> str:
    if not at:
        return ""
    local = datetime.fromisoformat(at).astimezone()
    return local.strftime("%Y-%m-%d %H:%M:%S.") + f"{local.microsecond // 1000:03}"


def _data(story: Story) -> dict[str, Any]:
    message = story.said
    return {
        "msgid": story.msgid,
        "said": None if message is None else _said_data(message),
        "steps": [
            {"state": step.state, "at": step.at or None, "by": step.by, "server": step.server} for step in story.steps
        ],
        "waits": dict(story.waits),
    }


def _said_data(message: TracedMessage) -> dict[str, Any]:
    return {"at": message.at, "by": message.sender, "place": message.place, "to": message.called, "text": message.text}
