"""irc_read: what the agent has not read yet, from the buffer, and what fell out of it from the server's history."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from culture.clients.shared.inbox import Mail
from culture.clients.shared.message_buffer import MessageBuffer, Ring
from culture.clients.shared.notes import Notes
from culture.transport import IRCTransport, Message, NoHistory

_PAGE = 100


@dataclass(frozen=True, slots=True)
class Page:
    """What was read; ``remaining`` more are in the buffer, ``gap`` says that something before could not be had."""

    messages: list[Message]
    remaining: int
    gap: bool = False


class Reading:
    """Reads for the agent, and remembers how far it has come."""

    def __init__(self, buffer: MessageBuffer, notes: Notes, transport: IRCTransport) -> None:
        self._buffer = buffer
        self._notes = notes
        self._transport = transport

    def restore(self, channels: Iterable[str], unread: Sequence[Mail]) -> None:
        """After a restart, what was not read before is in the history, or else in the inbox."""
        for place in {*channels, *(mail.place for mail in unread)}:
            self._buffer.ring(place).behind = self._notes.read(place) is not None
        for mail in unread:
            if self._notes.read(mail.place) is None:
                self._buffer.ring(mail.place).add(_message(mail))

    async def read(self, place: str, limit: int) -> Page:
        """Up to so many messages, the oldest first; nothing is passed over."""
        ring = self._buffer.ring(place)
        messages, gap = await self._older(place, ring, limit) if ring.behind else ([], False)
        messages += ring.take(limit - len(messages))
        if messages:
            self._notes.set_read(place, messages[-1].msgid)
        return Page(messages, ring.unread, gap)

    async def _older(self, place: str, ring: Ring, limit: int) -> tuple[list[Message], bool]:
        """What is behind the last that was read and not kept; the history has it by time, so some may be kept."""
        found = [ring.fallen] if ring.fallen is not None else []
        after = found[0].msgid if found else self._notes.read(place)
        try:
            while len(found) < limit:
                page = await self._transport.history(place, after, None, _PAGE)
                further = [message for message in page if message.msgid not in ring.ids]
                found += [message for message in further if not message.own]
                if len(page) < _PAGE or not further:
                    ring.behind = len(found) > limit
                    break
                after = page[-1].msgid
        except NoHistory:
            ring.behind = False
            return found, True
        ring.fallen = None
        return found[:limit], False


def _message(mail: Mail) -> Message:
    return Message(
        mail.place, mail.sender, mail.text, mail.said, mail.msgid, mail.account, mail.kind, private=mail.private
    )
