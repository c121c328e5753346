"""What every scene has: a stage, somebody who tells, and the ledger that proves what happened."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from culture.cli.demo.narrator import Narrator
from culture.cli.demo.stage import PATIENCE, Missed, Seat, Stage
from culture.facts.ledger import Fact, facts
from culture.protocol.names import fold, is_channel
from culture.transport import Message

_LOOK_AGAIN = 0.1


@dataclass(frozen=True, slots=True)
class Show:
    """The stage and who tells of it."""

    stage: Stage
    narrator: Narrator

    async def says(self, who: Seat, where: str, text: str) -> str:
        """A person speaks; the id of the message."""
        self.narrator.line(where if is_channel(where) else "(private)", who.nick, text)
        msgids = await who.transport.send_privmsg(where, text)
        await self.narrator.pause(0.8)
        return msgids[0]

    async def hears(self, who: Seat, sender: str, word: str, since: int = 0, *, notice: bool = False) -> Message:
        """Somebody is heard saying something with this word in it."""

        def fits(message: Message) -> bool:
            is_theirs = fold(message.sender) == fold(sender) and message.notice is notice
            return is_theirs and not message.own and word in message.text

        message = await who.ears.expect(f"{sender} said nothing with “{word}”", fits, since)
        self.narrator.heard(message)
        await self.narrator.pause(1.0)
        return message

    async def fact(self, what: str, is_it: Callable[[Fact], bool], *question: str) -> Fact:
        """The newest fact of the ledger that is like this, as soon as there is one."""
        return (await self.several(what, 1, is_it, *question))[-1]

    async def several(self, what: str, number: int, is_it: Callable[[Fact], bool], *question: str) -> list[Fact]:
        """The facts of the ledger that are like this, the oldest first, as soon as there are so many."""
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    found = await facts(self.stage.you.transport, *question, "limit=1000")
                    if len(fitting := [fact for fact in found if is_it(fact)]) >= number:
                        return fitting
                    await asyncio.sleep(_LOOK_AGAIN)
        except TimeoutError:
            raise Missed(f"the ledger has no fact: {what}") from None
