"""Telling what happens: for somebody who reads along, at a pace at which one can."""

import asyncio
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass

import typer

from culture.cli.agents.report_table import plain
from culture.cli.demo.stage import PATIENCE, DemoConnection, DemoStage, SceneFailed
from culture.cli.output import is_coloured
from culture.ledger_views.ledger import LedgerFact, facts
from culture.protocol.names import fold, is_channel
from culture.transport import Message

_WIDTH = 92
_INDENT = "     "
_LONGEST_NICK = 14
_LATE = 45.0  # seconds


class Narrator:
    """Prints, and waits a little where there is something to read."""

    def __init__(self, fast: bool) -> None:
        self._fast = fast
        self._coloured = is_coloured()
        self._begun = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._begun

    async def pause(self, seconds: float) -> None:
        """Let people read; on a machine that is slow by itself no more than it does."""
        if not self._fast and self.elapsed < _LATE:
            await asyncio.sleep(seconds)

    def say(self, text: str) -> None:
        """A paragraph."""
        typer.echo(textwrap.fill(text, _WIDTH))

    def title(self, number: int, text: str) -> None:
        """A scene begins."""
        typer.echo(f"\n{self._in(f'{number}. {text}', bold=True)}")

    def tell(self, text: str) -> None:
        """What happens and why."""
        typer.echo(textwrap.fill(text, _WIDTH, initial_indent="   ", subsequent_indent="   "))

    def command(self, text: str) -> None:
        """What one types."""
        typer.echo(f"{_INDENT}$ {self._in(text, fg='yellow')}")

    def heard(self, message: Message) -> None:
        """What somebody said."""
        where = message.channel if not message.private else "(private)"
        self.line(where, message.sender, message.text)

    def line(self, where: str, who: str, text: str) -> None:
        """A line of talk."""
        nick = f"<{plain(who)}>"
        shown = self._in(nick.ljust(_LONGEST_NICK + 2), fg="cyan")
        typer.echo(f"{_INDENT}{plain(where):<10} {shown} {plain(text, 160)}")

    def seen(self, text: str) -> None:
        """A fact that the ledger or the history has."""
        typer.echo(
            self._in(textwrap.fill(f"✓ {text}", _WIDTH, initial_indent="   ", subsequent_indent="     "), fg="green")
        )

    def missed(self, text: str) -> None:
        """A fact that should be there and is not."""
        typer.echo(self._in(f"   ✗ {text}", fg="red"))

    def _in(self, text: str, **style: str | bool) -> str:
        return typer.style(text, **style) if self._coloured else text  # type: ignore[arg-type]


_LOOK_AGAIN = 0.1


@dataclass(frozen=True, slots=True)
class DemoScene:
    """The stage and who tells of it."""

    stage: DemoStage
    narrator: Narrator

    async def says(self, who: DemoConnection, where: str, text: str) -> str:
        """A person speaks; the id of the message."""
        self.narrator.line(where if is_channel(where) else "(private)", who.nick, text)
        msgids = await who.transport.send_privmsg(where, text)
        await self.narrator.pause(0.8)
        return msgids[0]

    async def hears(
        self, who: DemoConnection, sender: str, word: str, since: int = 0, *, notice: bool = False
    ) -> Message:
        """Somebody is heard saying something with this word in it."""

        def fits(message: Message) -> bool:
            is_theirs = fold(message.sender) == fold(sender) and message.notice is notice
            return is_theirs and not message.own and word in message.text

        message = await who.ears.expect(f"{sender} said nothing with “{word}”", fits, since)
        self.narrator.heard(message)
        await self.narrator.pause(1.0)
        return message

    async def fact(self, what: str, is_it: Callable[[LedgerFact], bool], *question: str) -> LedgerFact:
        """The newest fact of the ledger that is like this, as soon as there is one."""
        return (await self.several(what, 1, is_it, *question))[-1]

    async def several(
        self, what: str, number: int, is_it: Callable[[LedgerFact], bool], *question: str
    ) -> list[LedgerFact]:
        """The facts of the ledger that are like this, the oldest first, as soon as there are so many."""
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    found = await facts(self.stage.you.transport, *question, "limit=1000")
                    if len(fitting := [fact for fact in found if is_it(fact)]) >= number:
                        return fitting
                    await asyncio.sleep(_LOOK_AGAIN)
        except TimeoutError:
            raise SceneFailed(f"the ledger has no fact: {what}") from None
