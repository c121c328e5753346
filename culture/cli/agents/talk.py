"""``culture say``, ``read``, ``ask`` and ``who``: talks on IRC as the person who types."""

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
    connected,
    current_person,
    joined,
    run,
    send_message,
    suggest_target,
    with_mention_if_command,
)
from culture.cli.agents.select_agents import resolve_nick
from culture.cli.options import AsJson
from culture.cli.output import as_json as in_json
from culture.cli.output import fail, one_line
from culture.clients.shared.skill import shown
from culture.protocol.mentions import calls_all, mentions
from culture.protocol.names import fold, is_channel, nearest
from culture.protocol.numerics import Numeric
from culture.protocol.vocabulary import ClientTag, Exit, Receipt, UserClass
from culture.transport import ChannelMember, IRCTransport, Message, NotSent

_AGENTS = (UserClass.AGENT, UserClass.BOT)
_ORDER = list(Receipt)


async def say_and_wait(who: IrcPerson, target: str, text: str, until: Receipt, timeout: float) -> bool:
    """Send a message, print its receipts, and wait until all recipients have sent ``until``.

    ``who``: the sender. ``target``: a channel or nick. Returns False if that takes more than ``timeout`` seconds.
    """
    news: asyncio.Queue[tuple[str, Receipt, str]] = asyncio.Queue()

    def heard(message: Message) -> None:
        if message.private and message.notice and not message.missed and not message.own:
            typer.echo(one_line(f"{message.sender}: {message.text}"), err=True)

    def stored(msgid: str, receipt: Receipt) -> None:
        news.put_nowait((msgid, receipt, ""))

    async with (
        connected(who, heard, stored, lambda *receipt: news.put_nowait(receipt)) as transport,
        joined(transport, target),
    ):
        recipients = await _recipients(transport, target, text)
        text = await with_mention_if_command(transport, target, text)
        msgids = set(await send_message(transport, target, text))
        typer.echo(" ".join(sorted(msgids)))
        await print_away(transport, recipients)
        try:
            async with asyncio.timeout(timeout):
                await _watch(news, msgids, recipients, until)
        except TimeoutError:
            return False
    return True


async def _watch(
    news: "asyncio.Queue[tuple[str, Receipt, str]]", msgids: set[str], recipients: set[str], until: Receipt
) -> None:
    """Print the receipts of messages until every recipient has sent the receipt ``until``.

    ``news``: receipts as they arrive (msgid, receipt, nick). ``msgids``: ids of the messages. Without recipients, it
    ends when the message is stored.
    """
    enough = _ORDER.index(until if recipients else Receipt.STORED)
    missing = recipients or {""}
    while missing:
        msgid, receipt, by = await news.get()
        if msgid not in msgids:
            continue
        typer.echo(f"{receipt.value} {by}".rstrip())
        sys.stdout.flush()
        if _ORDER.index(receipt) >= enough:
            missing = missing - {fold(by)}


async def _recipients(transport: IRCTransport, target: str, text: str) -> set[str]:
    """Return the agents for whom a message to ``target`` is, as nicks in lower case.

    In a channel these are the mentioned ones, or all of its agents if the text mentions everybody.
    """
    if not is_channel(target):
        return _agents(await transport.send_who(target))
    members = await transport.send_who(target)
    called = set(map(fold, mentions(text, [member.nick for member in members])))
    return _agents(members) if calls_all(text) else _agents(members) & called


async def print_away(transport: IRCTransport, nicks: Iterable[str]) -> None:
    """Print which of the nicks are away, because their answers may take long."""
    for nick in nicks:
        for line in await transport.request("WHOIS", nick):
            if line.verb == Numeric.RPL_AWAY.code:
                typer.echo(one_line(f"{line.params[1]} is away: {line.params[-1]}"), err=True)


def _agents(members: Iterable[ChannelMember]) -> set[str]:
    return {fold(member.nick) for member in members if member.kind in _AGENTS}


Target = Annotated[
    str, typer.Argument(metavar="TARGET", show_default=False, help="A channel in quotes ('#general'), or a nick.")
]
Text = Annotated[
    list[str], typer.Argument(metavar="TEXT", show_default=False, help="Text to send; - reads it from standard input.")
]


@for_people(USE_IRC_CLIENT)
def say(
    target: Target,
    text: Text,
    wait: Annotated[bool, typer.Option("--wait", help="Wait, and print the receipts.")] = False,
    until: Annotated[
        Receipt, typer.Option("--for", help="Receipt to wait for.", show_default=True)
    ] = Receipt.DELIVERED,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="How long to wait.")] = 60.0,
    nick: AsNick = None,
) -> None:
    """Send a message to a channel or a nick, as yourself.

    With --wait the message id is printed, then each receipt: stored, delivered, injected, answered. The command ends
    when every agent that the message is for has reached the state of --for. The exit code is 3 if that does not
    happen in time.
    """
    words = _text(text)
    if not wait:
        run(_say(current_person(nick), resolve_nick(target), words))
    elif not run(say_and_wait(current_person(nick), resolve_nick(target), words, until, timeout)):
        fail(f"it was not {until.value} within {timeout:g} s; `culture trace` shows why", Exit.TIMED_OUT)


@for_people(USE_IRC_CLIENT)
def read(
    channel: Target,
    number: Annotated[int, typer.Argument(metavar="N", min=1, show_default=True, help="Number of messages.")] = 20,
    nick: AsNick = None,
    as_json: AsJson = False,
) -> None:
    """Show the last messages of a channel, or of your private conversation with a nick."""
    messages = run(_read(current_person(nick), resolve_nick(channel), number))
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
    """Send a question and print the answer.

    In a channel, the answer is a message that mentions you or comes from a nick that the question mentions. A control
    word such as `stand down` is carried out by the agent's daemon, whose reply is printed. Exit codes: 0 answered, 1
    the agent gave up, 3 no answer in time, 4 the question was refused, 5 interrupted.
    """
    answer = run(ask_and_wait(current_person(nick), resolve_nick(target), _text(question), timeout))
    if answer is None:
        fail(f"nobody answered within {timeout:g} s", Exit.TIMED_OUT)
    if answer.notice and _is_failure(answer):
        fail(one_line(f"{answer.sender}: {answer.text}"))
    typer.echo("\n".join(one_line(line) for line in answer.text.splitlines()))


@for_people(USE_IRC_CLIENT)
def who(target: Target, nick: AsNick = None, as_json: AsJson = False) -> None:
    """Show who is in a channel, or who a nick is."""
    members = run(_who(current_person(nick), resolve_nick(target)))
    typer.echo(in_json(list(map(_row, members))) if as_json else _people(members, target))


async def _say(who: IrcPerson, target: str, text: str) -> None:
    async with connected(who) as transport, joined(transport, target):
        await send_message(transport, target, await with_mention_if_command(transport, target, text))


async def _read(who: IrcPerson, place: str, number: int) -> list[Message]:
    async with connected(who) as transport, joined(transport, place):
        messages = await transport.history(place, limit=number)
        if not messages and not is_channel(place) and not await transport.send_who(place):
            raise NotSent(f"nobody here is called {place}; {await suggest_target(transport, place)}")
        return messages


async def _who(who: IrcPerson, target: str) -> list[ChannelMember]:
    async with connected(who) as transport:
        members = await transport.send_who(target)
        if not members and is_channel(target):
            near = nearest(target, await transport.list_channels())
            raise NotSent(f"there is no channel {target} that you can see{f'; did you mean {near}?' if near else ''}")
        if not members:
            raise NotSent(f"nobody here is called {target}; {await suggest_target(transport, target)}")
        return members


async def ask_and_wait(who: IrcPerson, target: str, question: str, timeout: float) -> Message | None:
    """Send a question as ``who`` to a channel or nick; return the answer, or None on timeout.

    The result may also be an agent's notice that no answer will come. ``timeout``: how long to wait, in seconds.
    """
    messages: asyncio.Queue[Message] = asyncio.Queue()
    async with connected(who, messages.put_nowait) as transport, joined(transport, target):
        while not messages.empty():
            messages.get_nowait()
        question = await with_mention_if_command(transport, target, question)
        msgids = await send_message(transport, target, question)
        called = _mentioned_nicks(question, transport.members(target)) if is_channel(target) else {target}
        await print_away(transport, called)
        try:
            async with asyncio.timeout(timeout):
                while True:
                    message = await messages.get()
                    if not _is_theirs(message, transport, target, called):
                        continue
                    if not message.notice or message.tags.get(ClientTag.REPLY.value) in msgids:
                        return message
                    # Only says that an answer will come later.
                    typer.echo(one_line(f"{message.sender}: {message.text}"), err=True)
        except TimeoutError:
            return None


def _is_theirs(message: Message, transport: IRCTransport, target: str, called: Collection[str]) -> bool:
    """Whether a message is the awaited answer to a question that was sent to ``target``.

    ``called``: the nicks that the question mentions. In a channel, a message that mentions us is an answer too.
    """
    if message.own or message.missed:
        return False
    if not is_channel(target):
        return message.private and fold(message.sender) == fold(target)
    if message.private:
        return fold(message.sender) in called
    calls_us = fold(transport.nick) in map(fold, message.mentions)
    return fold(message.channel) == fold(target) and (calls_us or fold(message.sender) in called)


def _is_failure(notice: Message) -> bool:
    """Whether a notice of a daemon says that no answer will come; else it is a reply."""
    from culture.clients.shared.mail_replies import FAILED  # imports most of the client

    return notice.text.startswith(FAILED)


def _mentioned_nicks(question: str, members: Iterable[ChannelMember]) -> set[str]:
    """Return the channel members whom a question mentions, as nicks in lower case."""
    return set(map(fold, mentions(question, [member.nick for member in members])))


def _text(words: list[str]) -> str:
    text = sys.stdin.read() if words == ["-"] else " ".join(words)
    text = text.encode("utf-8", "replace").decode().strip("\n")
    if not text.strip():
        fail("the message is empty", Exit.USAGE)
    return text


def _line(message: Message) -> str:
    """Return a message as text with time and sender.

    Further lines of the message are indented, so that none looks like a message of its own.
    """
    first, *further = message.text.splitlines() or [""]
    at = message.timestamp.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return "\n".join(
        [f"[{at}] <{one_line(message.sender)}> {one_line(first)}", *(f"  {one_line(line)}" for line in further)]
    )


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
    return output.clean(shown.people(map(_row, members), target))


def _row(member: ChannelMember) -> dict[str, object]:
    return {
        "nick": member.nick,
        "modes": "@" if member.is_operator else "+" if "v" in member.modes else "",
        "class": member.kind.value,
        "account": member.account,
        "away": "away" if member.away else None,
    }
