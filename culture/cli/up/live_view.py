"""The live view: one seat of the person's own in the rooms, and the ledger."""

import asyncio
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import typer

from culture.cli.agents.irc_session import IrcPerson, present
from culture.cli.output import is_coloured
from culture.cli.up.live_lines import Screen
from culture.ledger_views.agents import agents
from culture.ledger_views.alerts import alerts
from culture.ledger_views.ledger import facts
from culture.ledger_views.questions import questions
from culture.protocol.vocabulary import FactKind
from culture.transport import IRCTransport, Message, NotSent

_LOOK = 1.0
_MOST = "limit=1000"
_BEFORE = timedelta(seconds=5)


async def watch(who: IrcPerson, rooms: Iterable[str], is_up: Callable[[], bool], told: asyncio.Event) -> None:
    """Show what happens until told to stop, or the server is no more."""
    screen = Screen(asyncio.get_running_loop().time, _painted if is_coloured() else lambda text, colour: text)
    begun = datetime.now(UTC)
    us = who.nick

    def heard(message: Message) -> None:
        if not message.missed or message.timestamp >= begun:
            _show(screen.said(message, us))

    async with present(who, heard) as transport:
        us = transport.nick
        for room in rooms:
            with suppress(NotSent):
                await transport.join_channel(room)
        since = begun - _BEFORE
        while not told.is_set() and is_up():
            now = datetime.now(UTC)
            if await _look(transport, screen, since):
                since = now - _BEFORE
            _show(screen.due())
            with suppress(TimeoutError):
                await asyncio.wait_for(told.wait(), _LOOK)


async def _look(transport: IRCTransport, screen: Screen, since: datetime) -> bool:
    """Read what is new in the ledger; False while there is none to read."""
    if not transport.connected:
        return False
    asked = f"since={since:%Y-%m-%dT%H:%M:%S.%fZ}"
    kinds = (FactKind.STATE, FactKind.QUESTION, FactKind.ALERT)
    try:
        new = [fact for kind in kinds for fact in await facts(transport, kind, "*", asked, _MOST)]
    except (NotSent, TimeoutError):
        return False
    _show(screen.facts(agents(new), questions(new), alerts(new)))
    return True


def _show(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)
    sys.stdout.flush()


def _painted(text: str, colour: str) -> str:
    return typer.style(text, dim=True) if colour == "dim" else typer.style(text, fg=colour)
