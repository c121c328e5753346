"""What is said once and no more, though the daemon or its connection may die between saying it and knowing that."""

import asyncio
import json
import logging
from collections.abc import Mapping

from culture.clients.shared.records import Records
from culture.protocol.names import fold
from culture.protocol.vocabulary import ClientTag
from culture.runtime import REAL, Runtime
from culture.transport import IRCTransport, Message, NotSent

log = logging.getLogger(__name__)

_LOOK_AGAIN = 0.1


class Once:
    """Knows our own words when the server shows them, at once or from its history, by the key they carry.

    What is begun is on disk before a word of it is said. A server that takes no tags shows no key: there a text may
    be said twice.
    """

    def __init__(self, nick: str, records: Records, transport: IRCTransport, *, runtime: Runtime = REAL) -> None:
        self._nick = nick
        self._records = records
        self._transport = transport
        self._runtime = runtime

    def heard(self, message: Message) -> None:
        """Take note of what we have said; before the message counts as received, else it would not come again."""
        key = message.tags.get(ClientTag.ONCE.value)
        # The nick may be that of our own ghost as yet.
        if key is None or not (message.own or fold(message.sender) == fold(self._nick)):
            return
        said = self._said(key)
        if said is not None and message.msgid not in said:
            self._records.execute(
                "UPDATE sendings SET said = ? WHERE key = ?", (json.dumps([*said, message.msgid]), key)
            )

    async def say(self, place: str, text: str, tags: Mapping[str, str], *, notice: bool = False) -> list[str]:
        """Say what was not said yet, under the key among the tags; the ids of all of it, or ``NotSent``."""
        key = tags[ClientTag.ONCE.value]
        if self._records.execute("INSERT OR IGNORE INTO sendings (key) VALUES (?)", (key,)).rowcount == 0:
            await self._look()
        said = self._said(key) or []
        if said:
            log.info("%s: %d messages of what it has to say in %s were said before", self._nick, len(said), place)
        send = self._transport.send_notice if notice else self._transport.send_privmsg
        return [*said, *await send(place, text, tags, skip=len(said))]

    async def say_surely(self, place: str, text: str, tags: Mapping[str, str]) -> list[str]:
        """The same for who waits for it: when the connection is lost meanwhile, it is said on the next, if it was not.

        Where the server may not show that, who waits is told and decides. Who has no patience cancels it.
        """
        key, shows_keys = self._runtime.token_hex(8), self._transport.is_ours
        try:
            while True:
                try:
                    return await self.say(place, text, {**tags, ClientTag.ONCE.value: key})
                except NotSent as refusal:
                    if not refusal.uncertain or not shows_keys:
                        raise
                await self._back()
        finally:
            self.forget(key)

    async def _back(self) -> None:
        """Until there is a connection, and what was missed is here."""
        while True:
            await asyncio.sleep(_LOOK_AGAIN)
            if self._transport.settled and not self._transport.is_behind:
                return

    def forget(self, key: str) -> None:
        """It is said, or never will be."""
        self._records.execute("DELETE FROM sendings WHERE key = ?", (key,))

    async def _look(self) -> None:
        """Know what has become of a try before this one."""
        if self._transport.is_behind:
            raise NotSent("the server cannot tell yet what was said before", uncertain=True)
        # What is on its way back to us on this connection has come when this is answered.
        await self._transport.request("PING", "said")

    def _said(self, key: str) -> list[str] | None:
        row = self._records.execute("SELECT said FROM sendings WHERE key = ?", (key,)).fetchone()
        return None if row is None else list(json.loads(row[0]))
