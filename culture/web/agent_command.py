"""Saying something to an agent's daemon as a person, and hearing what it says to that."""

import asyncio
from dataclasses import dataclass

from culture.protocol.names import fold
from culture.transport import Message
from culture.web.connection_pool import WebConnection

PATIENCE = 10.0
_COUNTS = ("is answered", "noted for", "denied:")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What became of it."""

    nick: str
    text: str
    """The daemon's words; empty where it said nothing."""

    @property
    def counts(self) -> bool:
        """Whether an answer was taken."""
        return any(words in self.text for words in _COUNTS)


async def tell(seat: WebConnection, agent: str, text: str, patience: float = PATIENCE) -> CommandResult:
    """Say this to an agent in private, and wait for the notice of its daemon."""
    heard: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def listen(message: Message) -> None:
        is_its = message.notice and not message.missed and fold(message.sender) == fold(agent)
        if is_its and not heard.done():
            heard.set_result(message.text)

    seat.listeners.add(listen)
    try:
        await seat.irc.send_privmsg(agent, text)
        async with asyncio.timeout(patience):
            return CommandResult(agent, await heard)
    except TimeoutError:
        return CommandResult(agent, "")
    finally:
        seat.listeners.discard(listen)
