"""A welcome for people, each of them once."""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from culture.clients.shared.notes import Notes
from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass
from culture.transport import IRCTransport, NotSent

MOST = 1000
"""So many are welcomed; whoever has more guests needs no guide."""


class Greeting:
    """Says the text of the configuration, in which ``{sender}`` is who comes and ``{nick}`` the agent."""

    def __init__(
        self,
        text: str | None,
        transport: IRCTransport,
        notes: Notes,
        say: Callable[[str, str], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._text = text
        self._transport = transport
        self._notes = notes
        self._say = say
        self._spawn = spawn

    def arrived(self, channel: str, nick: str) -> None:
        """Somebody has come into a channel."""
        if self._text is not None and self._is_new(nick):
            self._spawn(self._greet(self._text, channel, nick))

    async def _greet(self, text: str, channel: str, nick: str) -> None:
        """A JOIN does not tell who is a person: the server is asked. Strangers would use up all welcomes."""
        with suppress(NotSent):
            found = await self._transport.send_who(nick)
            if any(member.kind is UserClass.HUMAN for member in found) and self._is_new(nick):
                self._notes.greet(nick)
                self._say(channel, text.replace("{sender}", nick).replace("{nick}", self._transport.nick))

    def _is_new(self, nick: str) -> bool:
        greeted = self._notes.greeted
        return fold(nick) not in greeted and len(greeted) < MOST
