"""irc_read: what the agent has not read yet, from the buffer, and what fell out of it from the server's history."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from culture.clients.shared.held import HeldMail
from culture.clients.shared.inbox import Mail
from culture.clients.shared.message_buffer import MessageBuffer, Ring
from culture.clients.shared.notes import Notes
from culture.transport import IRCTransport, Message, NoHistory

_PAGE = 100


@dataclass(frozen=True, slots=True)
class Page:
    """What was read; ``remaining`` more are in the buffer, ``gap`` says that something before could not be had.

    ``withheld`` more were said by senders for whom nobody vouches.
    """

    messages: list[Message]
    remaining: int
    gap: bool = False
    withheld: int = 0


class Reading:
    """Reads for the agent, and remembers how far it has come."""

    def __init__(
        self,
        buffer: MessageBuffer,
        notes: Notes,
        transport: IRCTransport,
        held: HeldMail,
        is_hidden: Callable[[Message], bool],
    ) -> None:
        self._buffer = buffer
        self._held = held
        self._is_hidden = is_hidden
        self._released: set[str] = set()
        self._notes = notes
        self._transport = transport

    def restore(self, channels: Iterable[str], unread: Sequence[Mail]) -> None:
        """After a restart, what was not read before is in the history, or else in the inbox."""
        for place in dict.fromkeys([*channels, *(mail.place for mail in unread)]):
            self._buffer.ring(place).behind = self._notes.read(place) is not None
        for mail in unread:
            if self._notes.read(mail.place) is None:
                self._buffer.ring(mail.place).add(_message(mail))

    def show(self, message: Message) -> None:
        """The agent may read a message from now on that is older than what it has read."""
        self._released.add(message.msgid)
        self._buffer.add(message)

    def without_hidden(self, messages: Iterable[Message]) -> list[Message]:
        """What the agent may have of messages from the server's history."""
        return [message for message in messages if message.own or not self._is_hidden(message)]

    async def read(self, place: str, limit: int) -> Page:
        """Up to so many messages, the oldest first; nothing is passed over."""
        ring = self._buffer.ring(place)
        messages, gap = await self._older(place, ring, limit) if ring.behind else ([], False)
        messages += ring.take(limit - len(messages))
        # What a person released is older than what was read before, and would be the wrong place to go on from.
        in_order = [message.msgid for message in messages if message.msgid not in self._released]
        if in_order:
            self._notes.set_read(place, in_order[-1])
        if released := self._released.intersection(message.msgid for message in messages):
            self._released -= released
            self._held.read(released)
        return Page(messages, ring.unread, gap, self._held.count(place))

    async def _older(self, place: str, ring: Ring, limit: int) -> tuple[list[Message], bool]:
        """What is behind the last that was read and not kept; the history has it by time, so some may be kept."""
        found = [ring.fallen] if ring.fallen is not None else []
        after = found[0].msgid if found else self._notes.read(place)
        try:
            while len(found) < limit:
                page = await self._transport.history(place, after, None, _PAGE)
                further = [message for message in page if message.msgid not in ring.ids]
                found += [message for message in self.without_hidden(further) if not message.own]
                if len(page) < _PAGE or not further:
                    ring.behind = len(found) > limit
                    break
                after = page[-1].msgid
                if not found and after is not None:
                    # Nothing of this page is for the agent: it is not looked through once more.
                    self._notes.set_read(place, after)
        except NoHistory:
            ring.behind = False
            return found, True
        ring.fallen = None
        return found[:limit], False


def _message(mail: Mail) -> Message:
    return Message(
        mail.place, mail.sender, mail.text, mail.said, mail.msgid, mail.account, mail.kind, private=mail.private
    )
