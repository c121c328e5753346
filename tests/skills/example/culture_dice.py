"""A skill for culture: throws dice, and counts how often people speak of them."""

import asyncio
import random

from culture.config.values import Count, Settings
from culture.protocol.message import Message
from culture.server.commands import command
from culture.server.context import Context
from culture.server.errors import Failed
from culture.server.events import Said
from culture.server.skill import Skill, hook


class DiceSettings(Settings):
    """What the block ``dice`` may say."""

    sides: Count = 6
    word: str = "dice"


class Dice(Skill):
    """Answers ROLL and ROLLS."""

    name = "dice"
    Settings = DiceSettings
    settings: DiceSettings

    async def start(self) -> None:
        """Go on from the count of last time."""
        self._file = self.host.folder / "count"
        self._count = int(self._file.read_text()) if self._file.exists() else 0

    async def stop(self) -> None:
        """Keep the count for next time."""
        await asyncio.to_thread(self._file.write_text, str(self._count))

    @hook(Said)
    def on_said(self, event: Said) -> None:
        """Count what is said of dice, in channels and not in private."""
        if event.target.startswith("#") and self.settings.word in event.text:
            self._count += 1

    @command("ROLL")
    def roll(self, ctx: Context, message: Message) -> None:
        """``ROLL [sides]``: throw a die."""
        sides = message.params[0] if message.params else str(self.settings.sides)
        if not sides.isdecimal() or not 1 <= int(sides) <= 1000:
            raise Failed("ROLL", "INVALID_SIDES", sides, text="A die has 1 to 1000 sides")
        ctx.send("ROLL", ctx.nick, str(random.randint(1, int(sides))))

    @command("ROLLS")
    def rolls(self, ctx: Context, message: Message) -> None:
        """``ROLLS``: how often somebody spoke of dice."""
        ctx.send("ROLLS", ctx.nick, str(self._count))
