"""Telling what happens: for somebody who reads along, at a pace at which one can."""

import asyncio
import textwrap
import time

import typer

from culture.cli.agents.table import plain
from culture.cli.colours import is_coloured
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
