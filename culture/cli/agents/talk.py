"""``culture say``, ``read``, ``ask`` and ``who``: a word from the command line, as the person who types it."""

import asyncio
import sys
from collections.abc import Collection, Iterable
from typing import Annotated

import typer

from culture.cli import output
from culture.cli.agent_access import for_people
from culture.cli.agents.irc_session import (
    USE_IRC_CLIENT,
    AsNick,
    IrcPerson,
    as_command,
    instead_of,
    person,
    present,
    run,
    speak,
    within,
)
from culture.cli.agents.report_table import plain
from culture.cli.agents.select_agents import meant
from culture.cli.options import AsJson
from culture.cli.output import as_json as in_json
from culture.cli.output import fail
from culture.clients.shared.skill import shown
from culture.protocol.mentions import calls_all, mentions
from culture.protocol.names import fold, is_channel, nearest
from culture.protocol.numerics import Numeric
from culture.protocol.vocabulary import ClientTag, Exit, Receipt, UserClass
from culture.transport import ChannelMember, IRCTransport, Message, NotSent

_AGENTS = (UserClass.AGENT, UserClass.BOT)
_ORDER = list(Receipt)


async def say_and_wait(who: IrcPerson, target: str, text: str, until: Receipt, timeout: float) -> bool:
    """Say it, show each receipt, and wait for all agents that it is for; False when time ran out."""
    news: asyncio.Queue[tuple[str, Receipt, str]] = asyncio.Queue()

    def heard(message: Message) -> None:
        if message.private and message.notice and not message.missed and not message.own:
            typer.echo(plain(f"{message.sender}: {message.text}"), err=True)

    def stored(msgid: str, receipt: Receipt) -> None:
        news.put_nowait((msgid, receipt, ""))

    async with (
        present(who, heard, stored, lambda *receipt: news.put_nowait(receipt)) as transport,
        within(transport, target),
    ):
        wanted = await _whom(transport, target, text)
        text = await as_command(transport, target, text)
        msgids = set(await speak(transport, target, text))
        typer.echo(" ".join(sorted(msgids)))
        await tell_who_is_away(transport, wanted)
        try:
            async with asyncio.timeout(timeout):
                await _watch(news, msgids, wanted, until)
        except TimeoutError:
            return False
    return True


async def _watch(
    news: "asyncio.Queue[tuple[str, Receipt, str]]", msgids: set[str], wanted: set[str], until: Receipt
) -> None:
    """Without anybody who could say more, what is stored is all there is to know."""
    enough = _ORDER.index(until if wanted else Receipt.STORED)
    missing = wanted or {""}
    while missing:
        msgid, receipt, by = await news.get()
        if msgid not in msgids:
            continue
        typer.echo(f"{receipt.value} {by}".rstrip())
        sys.stdout.flush()
        if _ORDER.index(receipt) >= enough:
            missing = missing - {fold(by)}


async def _whom(transport: IRCTransport, target: str, text: str) -> set[str]:
    """The agents that a message is for, folded."""
    if not is_channel(target):
        return _agents(await transport.send_who(target))
    members = await transport.send_who(target)
    called = set(map(fold, mentions(text, [member.nick for member in members])))
    return _agents(members) if calls_all(text) else _agents(members) & called


async def tell_who_is_away(transport: IRCTransport, nicks: Iterable[str]) -> None:
    """Whoever is away may take long to answer: say so before the wait."""
    for nick in nicks:
        for line in await transport.request("WHOIS", nick):
            if line.verb == Numeric.RPL_AWAY.code:
                typer.echo(plain(f"{line.params[1]} is away: {line.params[-1]}"), err=True)


def _agents(members: Iterable[ChannelMember]) -> set[str]:
    return {fold(member.nick) for member in members if member.kind in _AGENTS}


Target = Annotated[
    str, typer.Argument(metavar="TARGET", show_default=False, help="A channel in quotes ('#general'), or a nick.")
]
Text = Annotated[
    list[str], typer.Argument(metavar="TEXT", show_default=False, help="What to say; - reads it from standard input.")
]


@for_people(USE_IRC_CLIENT)
def say(
    target: Target,
    text: Text,
    wait: Annotated[bool, typer.Option("--wait", help="Show how far it comes, and wait.")] = False,
    until: Annotated[
        Receipt, typer.Option("--for", help="How far it is to come.", show_default=True)
    ] = Receipt.DELIVERED,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="How long to wait.")] = 60.0,
    nick: AsNick = None,
) -> None:
    """Say something in a channel or to somebody, as yourself.

    With --wait the id of the message is printed, and each receipt as it comes:
    stored, delivered, injected, answered. It ends when every agent that the
    message is for has come as far as --for says; the exit code is 3 when
    that did not happen in time.
    """
    words = _text(text)
    if not wait:
        run(_say(person(nick), meant(target), words))
    elif not run(say_and_wait(person(nick), meant(target), words, until, timeout)):
        fail(f"it was not {until.value} within {timeout:g} s; `culture trace` tells why", Exit.TIMED_OUT)


@for_people(USE_IRC_CLIENT)
def read(
    channel: Target,
    number: Annotated[int, typer.Argument(metavar="N", min=1, show_default=True, help="So many.")] = 20,
    nick: AsNick = None,
    as_json: AsJson = False,
) -> None:
    """Show the last things that were said in a channel, or between you and somebody."""
    messages = run(_read(person(nick), meant(channel), number))
    if as_json:
        typer.echo(in_json([_entry(message) for message in messages]))
        return
    for message in messages:
        typer.echo(_line(message))


@for_people(USE_IRC_CLIENT)
def ask(
    target: Target,
    question: Text,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="How long to wait.")] = 300.0,
    nick: AsNick = None,
) -> None:
    """Ask somebody and print the answer.

    In a channel the answer is what mentions you, or comes from whom the question
    calls. A control word such as `stand down` is carried out by the agent's daemon,
    whose answer is printed. The exit code is 0 for an answer, 1 when the agent has given up on the
    question, 3 when no answer came in time, 4 when the question was not let
    through, 5 when you broke it off.
    """
    answer = run(answer_of(person(nick), meant(target), _text(question), timeout))
    if answer is None:
        fail(f"nobody answered within {timeout:g} s", Exit.TIMED_OUT)
    if answer.notice and _is_failure(answer):
        fail(plain(f"{answer.sender}: {answer.text}"))
    typer.echo("\n".join(plain(line) for line in answer.text.splitlines()))


@for_people(USE_IRC_CLIENT)
def who(target: Target, nick: AsNick = None, as_json: AsJson = False) -> None:
    """Show who is in a channel, or who somebody is."""
    members = run(_who(person(nick), meant(target)))
    typer.echo(in_json(list(map(_row, members))) if as_json else _people(members, target))


async def _say(who: IrcPerson, target: str, text: str) -> None:
    async with present(who) as transport, within(transport, target):
        await speak(transport, target, await as_command(transport, target, text))


async def _read(who: IrcPerson, place: str, number: int) -> list[Message]:
    async with present(who) as transport, within(transport, place):
        found = await transport.history(place, limit=number)
        if not found and not is_channel(place) and not await transport.send_who(place):
            raise NotSent(f"nobody here is called {place}; {await instead_of(transport, place)}")
        return found


async def _who(who: IrcPerson, target: str) -> list[ChannelMember]:
    async with present(who) as transport:
        members = await transport.send_who(target)
        if not members and is_channel(target):
            near = nearest(target, await transport.list_channels())
            raise NotSent(f"there is no channel {target} that you can see{f'; did you mean {near}?' if near else ''}")
        if not members:
            raise NotSent(f"nobody here is called {target}; {await instead_of(transport, target)}")
        return members


async def answer_of(who: IrcPerson, target: str, question: str, timeout: float) -> Message | None:
    """The answer, or the notice that there will be none; None when neither came in time."""
    heard: asyncio.Queue[Message] = asyncio.Queue()
    async with present(who, heard.put_nowait) as transport, within(transport, target):
        while not heard.empty():
            heard.get_nowait()
        question = await as_command(transport, target, question)
        msgids = await speak(transport, target, question)
        called = _called(question, transport.members(target)) if is_channel(target) else {target}
        await tell_who_is_away(transport, called)
        try:
            async with asyncio.timeout(timeout):
                while True:
                    message = await heard.get()
                    if not _is_theirs(message, transport, target, called):
                        continue
                    if not message.notice or message.tags.get(ClientTag.REPLY.value) in msgids:
                        return message
                    # It says only that an answer will come later.
                    typer.echo(plain(f"{message.sender}: {message.text}"), err=True)
        except TimeoutError:
            return None


def _is_theirs(message: Message, transport: IRCTransport, target: str, called: Collection[str]) -> bool:
    """Whether this is from whom was asked, and to us."""
    if message.own or message.missed:
        return False
    if not is_channel(target):
        return message.private and fold(message.sender) == fold(target)
    if message.private:
        return fold(message.sender) in called
    calls_us = fold(transport.nick) in map(fold, message.mentions)
    return fold(message.channel) == fold(target) and (calls_us or fold(message.sender) in called)


def _is_failure(notice: Message) -> bool:
    """Whether an agent's daemon says that the question gets no answer; any other reply is that to a control word."""
    from culture.clients.shared.mail_replies import FAILED  # brings all that an agent works with

    return notice.text.startswith(FAILED)


def _called(question: str, members: Iterable[ChannelMember]) -> set[str]:
    """The nicks that a question calls."""
    return set(map(fold, mentions(question, [member.nick for member in members])))


def _text(words: list[str]) -> str:
    text = sys.stdin.read() if words == ["-"] else " ".join(words)
    text = text.encode("utf-8", "replace").decode().strip("\n")
    if not text.strip():
        fail("there is nothing to say", Exit.USAGE)
    return text


def _line(message: Message) -> str:
    """A message for people; its further lines are indented, so that none can pass for another."""
    first, *further = message.text.splitlines() or [""]
    at = message.timestamp.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return "\n".join([f"[{at}] <{plain(message.sender)}> {plain(first)}", *(f"  {plain(line)}" for line in further)])


def _entry(message: Message) -> dict[str, object]:
    return {
        "msgid": message.msgid,
        "time": message.timestamp.isoformat(),
        "place": message.channel,
        "nick": message.sender,
        "account": message.account,
        "class": message.kind.value,
        "notice": message.notice,
        "text": message.text,
    }


def _people(members: Iterable[ChannelMember], target: str) -> str:
    return output.shown(shown.people(map(_row, members), target))


def _row(member: ChannelMember) -> dict[str, object]:
    return {
        "nick": member.nick,
        "modes": "@" if member.is_operator else "+" if "v" in member.modes else "",
        "class": member.kind.value,
        "account": member.account,
        "away": "away" if member.away else None,
    }
