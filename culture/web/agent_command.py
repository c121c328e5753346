"""Send a command or an answer to an agent's daemon as a person, and wait for its reply."""

import asyncio
from dataclasses import dataclass

from culture.protocol.names import fold
from culture.transport import Message
from culture.web.connection_pool import WebConnection

TIMEOUT = 10.0
_ACCEPTED = ("is answered", "noted for", "denied:")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Reply of an agent's daemon to a control word or an answer that a person sent."""

    nick: str
    text: str
    """The daemon's reply; empty if there was none in time."""

    @property
    def is_accepted(self) -> bool:
        """Whether the daemon's reply says that it accepted an answer to a question."""
        return any(phrase in self.text for phrase in _ACCEPTED)


async def send_to_agent(connection: WebConnection, agent: str, text: str, timeout: float = TIMEOUT) -> CommandResult:
    """Send a private message to an agent, and return the notice with which its daemon replies.

    If there is no reply in ``timeout`` seconds, the text of the result is empty.
    """
    reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def on_message(message: Message) -> None:
        is_reply = message.notice and not message.missed and fold(message.sender) == fold(agent)
        if is_reply and not reply.done():
            reply.set_result(message.text)

    connection.listeners.add(on_message)
    try:
        await connection.irc.send_privmsg(agent, text)
        async with asyncio.timeout(timeout):
            return CommandResult(agent, await reply)
    except TimeoutError:
        return CommandResult(agent, "")
    finally:
        connection.listeners.discard(on_message)
