"""Between the loop and the writer: who gets a receipt, who waits for what was said before, who has to slow down."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from culture.protocol.message import Message
from culture.protocol.vocabulary import Cap, ClientTag, Receipt, Tag
from culture.server.core.ids import EventId
from culture.server.core.session import Session
from culture.server.skill import Host
from culture.skills.history.writer import Item, Spoken, Writer

_RECEIPTS = Cap.RECEIPTS.value
_EASE = 2  # once no more than the half of what makes speakers wait is left, they may go on


class _Owed(NamedTuple):
    number: int
    session: Session
    stamp: EventId


Further = tuple[Session, bytes]
"""A further receipt, and who is to have it."""


class Intake:
    """Gives items to the writer, from the loop's thread alone."""

    def __init__(self, host: Host, writer: Writer, slow_from: int) -> None:
        self._host = host
        self._writer = writer
        self._slow_from = slow_from
        self._receipts: deque[_Owed] = deque()
        self._further: dict[str, list[Further]] = {}
        """By the ids of messages that are not on disk yet: what is to be said of them after that."""
        self._readers: dict[asyncio.Future[None], int] = {}
        self._slowed: dict[Session, None] = {}
        host.when_gone(lambda session: self._slowed.pop(session, None))

    def keep(self, item: Item) -> None:
        """Have it written."""
        self._writer.put(item)

    def keep_said(self, spoken: Spoken, by: Session) -> None:
        """The same; ``by`` is told when it is written, if it asked for that, and waits while too much is waiting."""
        writer = self._writer
        if _RECEIPTS in by.caps.enabled and self._host.had_room():
            writer.is_awaited = True  # before the writer has it, which may be done with it at once
            if not writer.put(spoken):
                return
            self._receipts.append(_Owed(writer.taken, by, spoken.said.id))
            self._further[spoken.said.id.msgid] = []
        elif not writer.put(spoken):
            return
        if writer.taken - writer.written > self._slow_from and not writer.is_stuck:
            self._slow_down(by)

    def receipt(self, msgid: str, further: Iterable[Further]) -> None:
        """A message has come further: said at once, but never before it is said that it is stored."""
        waiting = self._further.get(msgid)
        if waiting is not None:
            waiting += further
            return
        for session, line in further:
            session.send(line)

    def settle(self) -> None:
        """More is written: tell those who wait for it."""
        written = self._writer.written
        with self._host.turn():
            while self._receipts and self._receipts[0].number <= written:
                self._give(self._receipts.popleft())
            for reader, number in self._readers.items():
                if number <= written and not reader.done():
                    reader.set_result(None)
            if self._writer.waiting * _EASE <= self._slow_from or self._writer.is_stuck:
                self._speed_up()
        self._writer.is_awaited = bool(self._receipts or self._readers or self._slowed)

    async def written(self, patience: float) -> bool:
        """Wait until what was said before is on disk; False where that takes longer than so many seconds."""
        writer = self._writer
        number = writer.taken
        if writer.written >= number:
            return True
        reader = asyncio.get_running_loop().create_future()
        self._readers[reader] = number
        writer.is_awaited = True
        try:
            if writer.written < number:
                async with asyncio.timeout(patience):
                    await reader
        except TimeoutError:
            return False
        finally:
            del self._readers[reader]
        return True

    def _give(self, owed: _Owed) -> None:
        session = owed.session
        if owed.number in self._writer.unkept:
            self._writer.unkept.discard(owed.number)
        elif not session.ended and session.user is not None:
            tags = {Tag.RECEIPT.value: Receipt.STORED.value, ClientTag.REPLY.value: owed.stamp.msgid}
            session.send(bytes(Message("TAGMSG", (session.user.nick,), self._host.name, tags)))
        for other, line in self._further.pop(owed.stamp.msgid, ()):
            if not other.ended:
                other.send(line)

    def _slow_down(self, session: Session) -> None:
        """Read no more of somebody who says more than the disk can take; their own system holds the rest."""
        self._writer.is_awaited = True
        if self._writer.waiting <= self._slow_from:
            return  # it has caught up meanwhile, and may have nothing more to tell
        session.connection.pause()
        self._slowed[session] = None

    def _speed_up(self) -> None:
        for session in self._slowed:
            if not session.is_busy:
                session.connection.resume()
        self._slowed.clear()
