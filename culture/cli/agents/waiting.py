"""``culture say --wait``: how far a message comes, until it has come far enough."""

import asyncio
import sys
from collections.abc import Iterable

import typer

from culture.cli.agents.person import Person, as_command, present, speak, within
from culture.cli.agents.table import plain
from culture.protocol.mentions import calls_all, mentions
from culture.protocol.names import fold, is_channel
from culture.protocol.numerics import Numeric
from culture.protocol.vocabulary import Receipt, UserClass
from culture.transport import IRCTransport, Member, Message

_AGENTS = (UserClass.AGENT, UserClass.BOT)
_ORDER = list(Receipt)


async def say_and_wait(who: Person, target: str, text: str, until: Receipt, timeout: float) -> bool:
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


def _agents(members: Iterable[Member]) -> set[str]:
    return {fold(member.nick) for member in members if member.kind in _AGENTS}
