"""The requests a daemon answers: a table of verbs, each with its fields and what it does at the ``Desk``."""

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from culture.clients.shared.desk import Desk, RequestFailed
from culture.clients.shared.fields import (
    CHANNEL,
    CONTENT,
    DIRECTORY,
    FLAG,
    KEY,
    LIMIT,
    OPTIONAL_CHANNEL,
    OPTIONAL_TARGET,
    OPTIONAL_TEXT,
    OPTIONS,
    QUESTION_ID,
    TARGET,
    TEXT,
    TIMEOUT,
    WHOSE,
    Field,
    WrongField,
)
from culture.clients.shared.ipc import MARGIN, WORK_LIMIT, Request
from culture.clients.shared.skill.directory import NoDirectory, instructions
from culture.protocol.text import Profile, clean

Handler = Callable[..., Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Verb:
    """One kind of request."""

    type: str
    fields: Mapping[str, Field]
    do: Handler
    by_agent: bool
    """Whether it is the agent's own call, so that whispers reach the agent with it."""


VERBS: dict[str, Verb] = {}


def verb(type: str, *, by_agent: bool = True, **fields: Field) -> Callable[[Handler], Handler]:
    """Put a handler into the table; it gets the desk and each field under its name."""

    def enter(do: Handler) -> Handler:
        VERBS[type] = Verb(type, fields, do, by_agent)
        return do

    return enter


def is_for_people(type: str) -> bool:
    """Whether only a person, or a program that looks after the agent, may ask this, and no agent."""
    return type in ("resume", "prompt")


def is_agents_own(type: str) -> bool:
    """Whether such a request comes from the agent, and not from whoever looks after it."""
    return type in VERBS and VERBS[type].by_agent


async def answer(desk: Desk, request: Request) -> object:
    """Do what is asked and return the response's data; RequestFailed says why not."""
    known = VERBS.get(request.type)
    if known is None:
        raise RequestFailed(_unknown(request.type))
    try:
        values = _checked(known, request.fields)
    except WrongField as wrong:
        raise RequestFailed(f"{request.type}: {wrong}") from None
    limit = time_limit(values)
    try:
        async with asyncio.timeout(limit):
            return await known.do(desk, **values)
    except RequestFailed as failed:
        raise RequestFailed(clean(str(failed), Profile.MODEL)) from None
    except TimeoutError:
        raise RequestFailed(f"{request.type}: not done within {limit or WORK_LIMIT:g} s") from None


def _checked(known: Verb, given: Mapping[str, object]) -> dict[str, object]:
    spelled = {alias: name for name, field in known.fields.items() for alias in (name, *field.also)}
    if strange := given.keys() - spelled.keys():
        takes = ", ".join(known.fields) or "no fields"
        raise WrongField(f"{min(strange)!r} is no field of it; it takes {takes}")
    return {name: field.value(name, given) for name, field in known.fields.items()}


def time_limit(values: Mapping[str, object]) -> float | None:
    """The daemon ends before its client gives up; a question without a time of its own ends when the desk says so."""
    if "timeout" not in values:
        return WORK_LIMIT
    timeout = values["timeout"]
    return timeout + MARGIN / 2 if isinstance(timeout, float) else None


def _unknown(type: str) -> str:
    near = difflib.get_close_matches(type, VERBS, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(VERBS)}"
    return f"{type[:80]!r} is no request; {hint}"


@verb("irc_send", channel=TARGET, message=TEXT)
async def irc_send(desk: Desk, channel: str, message: str) -> object:
    """Say something in a channel, or to a nick."""
    return await desk.send(channel, message)


@verb("irc_read", channel=TARGET, limit=LIMIT)
async def irc_read(desk: Desk, channel: str, limit: int) -> object:
    """What was said since the last time, oldest first."""
    return await desk.read(channel, limit)


@verb("irc_search", channel=CHANNEL, text=TEXT, meaning=FLAG, limit=LIMIT)
async def irc_search(desk: Desk, channel: str, text: str, meaning: bool, limit: int) -> object:
    """What was ever said in a channel with these words, or near them in meaning."""
    return await desk.search(channel, text, meaning, limit)


@verb(
    "irc_ask",
    channel=OPTIONAL_TARGET,
    question=OPTIONAL_TEXT,
    timeout=TIMEOUT,
    options=OPTIONS,
    again=QUESTION_ID,
    reply=OPTIONAL_TEXT,
)
async def irc_ask(
    desk: Desk,
    channel: str | None,
    question: str | None,
    timeout: float | None,
    options: tuple[str, ...],
    again: str | None,
    reply: str | None,
) -> object:
    """Ask, or wait on, and hold the request open until somebody answers or the time is over."""
    if again is not None:
        if channel is not None or question is not None or timeout is not None or options:
            raise RequestFailed("irc_ask: with again only reply is taken: the question is as it was asked")
        return await desk.again(again, reply)
    if channel is None or question is None:
        raise RequestFailed(f"irc_ask: {'channel' if channel is None else 'question'} is missing")
    if reply is not None:
        raise RequestFailed("irc_ask: reply is for a question that was asked before; say which with again")
    return await desk.ask(channel, question, timeout, options)


@verb("irc_join", channel=CHANNEL)
async def irc_join(desk: Desk, channel: str) -> object:
    """Enter a channel."""
    await desk.join(channel)
    return {"channel": channel}


@verb("irc_part", channel=CHANNEL)
async def irc_part(desk: Desk, channel: str) -> object:
    """Leave a channel."""
    await desk.part(channel)
    return {"channel": channel}


@verb("irc_channels")
async def irc_channels(desk: Desk) -> object:
    """The channels the agent is in, and how many are there."""
    return await desk.channels()


@verb("irc_who", channel=WHOSE)
async def irc_who(desk: Desk, channel: str) -> object:
    """Who is in a channel, or who a nick is."""
    return await desk.who(channel)


@verb("spawn_agent", role=KEY, text=TEXT, timeout=TIMEOUT)
async def spawn_agent(desk: Desk, role: str, text: str, timeout: float | None) -> object:
    """Another agent of the team, for a part of the work."""
    return await desk.spawn_agent(role, text, timeout)


@verb("compact")
async def compact(desk: Desk) -> object:
    """Shorten the agent's context."""
    await desk.compact()
    return {}


@verb("clear")
async def clear(desk: Desk) -> object:
    """Begin a new conversation; what concerns IRC stays."""
    await desk.clear()
    return {}


@verb("set_directory", path=DIRECTORY)
async def set_directory(desk: Desk, path: str) -> object:
    """The instructions of another folder, which the agent then works in."""
    if desk.is_outside:
        raise RequestFailed(
            "your daemon is not in your sandbox, and reads no file for you: irc_client set-directory does"
        )
    try:
        found = await asyncio.to_thread(instructions, Path(path))
    except NoDirectory as wrong:
        raise RequestFailed(str(wrong)) from None
    return {"path": found.path, "file": found.file, "text": found.text}


@verb("activity", by_agent=False, content=CONTENT, hear=FLAG)
async def activity(desk: Desk, content: list[dict[str, object]], hear: bool) -> object:
    """What an agent does that was started by hand, for the supervisor, and what the supervisor says to it."""
    return {"whispers": await desk.activity(content, hear)}


@verb("prompt", by_agent=False, text=OPTIONAL_TEXT, key=KEY, wait=FLAG, place=OPTIONAL_CHANNEL, timeout=TIMEOUT)
async def prompt(
    desk: Desk, text: str | None, key: str, wait: bool, place: str | None, timeout: float | None
) -> object:
    """Something to do, from whoever looks after the agent; with ``wait`` held open until that turn is over."""
    return await desk.prompt(key, text, place, wait, timeout)


@verb("questions", by_agent=False, closed=FLAG)
async def questions(desk: Desk, closed: bool) -> object:
    """What the agent has asked."""
    return {"questions": await desk.questions(closed)}


@verb("status", by_agent=False)
async def status(desk: Desk) -> object:
    """What the agent is doing."""
    return await desk.status()


@verb("usage", by_agent=False, since=OPTIONAL_TEXT, timeout=TIMEOUT)
async def usage(desk: Desk, since: str | None, timeout: float | None) -> object:
    """What the agent has used; with the mark of an earlier answer held open until it has used more."""
    return await desk.usage(since, timeout)


@verb("pause", by_agent=False, soon=FLAG)
async def pause(desk: Desk, soon: bool) -> object:
    """Let the agent rest; what is said to it waits. With ``soon`` the turn that runs is not waited for."""
    await desk.pause(soon)
    return {}


@verb("resume", by_agent=False, reason=OPTIONAL_TEXT)
async def resume(desk: Desk, reason: str | None) -> object:
    """Let it go on; it is told the reason."""
    await desk.resume(reason or "")
    return {}


@verb("shutdown", by_agent=False)
async def shutdown(desk: Desk) -> object:
    """Stop the daemon."""
    await desk.shutdown()
    return {}
