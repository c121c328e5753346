"""Each message once, in order, missed messages before new ones.

The problem: after a reconnect messages come from two sources at the same time. The server sends live ones at once;
what was missed has to be fetched from its history (``catchup``). The two overlap, and the process may be killed at any
moment. The receiver wants each message exactly once, the older before the newer.

The rules:

1. A message is identified by its msgid. Without one from the server, ``parse_messages`` derives an id from time,
   sender, target and text, so that the same message from the history has the same id.
2. ``hold`` is called when a connection begins, before anything arrives on it: live messages wait until ``release``.
   Missed messages are delivered meanwhile. Only ids that were delivered are remembered, so the copy that comes second
   is dropped, whichever it is.
3. An id is remembered after the receiver has returned, never before. If the receiver raises (a full disk), the
   connection is ended with ``Undelivered``, and the message comes again from the history. A message that fails twice
   by its own fault is logged and skipped, or it would block everything behind it.
4. The mark moves with each delivery. The receiver stores it (``ReceiveCursor``); after a restart the memory here is
   empty, and ``cursor.knows`` says which of the fetched messages are stored already.

Why it is right: between two marks nothing is skipped, because live messages wait for the history, and nothing is
delivered twice, because both sources pass the same set of ids. What overflows the queue of held messages is not lost:
``overflowed`` makes ``catchup`` fetch it too.

Example: mark at message 5; 6 and 7 are said while we are away; we reconnect, and 8 arrives live: held. The history
returns 6, 7, 8: delivered in this order. ``release`` finds the held 8 among the delivered ids and drops it.
"""

import logging
import sqlite3
from collections import OrderedDict, deque
from datetime import datetime

from culture.protocol.names import fold
from culture.transport.parse_messages import LOCAL
from culture.transport.types import MARK_SIZE, Message, OnMessage, ReceiveCursor, ReceiveMark

log = logging.getLogger(__name__)

_MAX_SEEN = 20_000
_MAX_HELD = 10_000
_MAX_RECENT, _MAX_RECENT_CHANNELS = 500, 200
_TRANSIENT = (OSError, sqlite3.OperationalError)
"""Errors that are not a message's fault and pass, such as a full disk."""


class Undelivered(Exception):
    """The receiver raised an exception for a message, which will come again from the history."""


class Delivery:
    """Passes messages to the receiver, each once and in order, in spite of reconnects.

    Live messages and missed ones from the history come in by ``take_live`` and ``take_missed``.
    """

    def __init__(self, on_message: OnMessage | None, cursor: ReceiveCursor | None) -> None:
        self._on_message = on_message
        self._cursor = cursor
        self._seen_ids: OrderedDict[str, None] = OrderedDict()
        self._failed: set[str] = set()
        self._held_messages: list[Message] | None = None
        self._recent: OrderedDict[str, deque[Message]] = OrderedDict()
        self._newest: deque[str] = deque(maxlen=MARK_SIZE)
        self._time: datetime | None = None
        self.overflowed = False
        """More live messages came than can be held: they have to be fetched from the history."""

    @property
    def mark(self) -> ReceiveMark | None:
        """How far this process has received messages; None before the first message."""
        return None if self._time is None else ReceiveMark(tuple(self._newest), self._time)

    def begin_at(self, time: datetime) -> None:
        """Set the time from which on messages count as missed, unless a message has already set it."""
        if self._time is None:
            self._time = time

    def hold(self) -> None:
        """Hold back live messages from now on.

        Messages that are already held back are dropped; the catch-up fetches them from the history.
        """
        self._held_messages = []
        self.overflowed = False

    def release(self) -> None:
        """Deliver the messages held back; from now on, deliver live messages as they arrive."""
        while self._held_messages:
            self._deliver(self._held_messages.pop(0))
        self._held_messages = None
        self.overflowed = False

    def take_live(self, message: Message) -> None:
        """Deliver a message that arrived live, or hold it back if ``hold`` was called."""
        if self._held_messages is None:
            self._deliver(message)
        elif len(self._held_messages) < _MAX_HELD:
            self._held_messages.append(message)
        else:
            self.overflowed = True
            self._held_messages.clear()

    def take_missed(self, message: Message) -> None:
        """Deliver a message from the history, unless the receiver has stored it before."""
        if self._cursor is not None and message.msgid not in self._seen_ids and self._cursor.knows(message.msgid):
            self._remember(message)
        else:
            self._deliver(message)

    def recent(self, target: str) -> list[Message]:
        """Return the last messages delivered for a channel or nick (at most 500), the oldest first."""
        return list(self._recent.get(fold(target), ()))

    def _deliver(self, message: Message) -> None:
        if message.msgid in self._seen_ids:
            return
        try:
            if self._on_message is not None:
                self._on_message(message)
        except Exception as error:
            log.exception("the receiver failed for message %s from %s", message.msgid, message.sender)
            if message.msgid not in self._failed or isinstance(error, _TRANSIENT):
                self._failed.add(message.msgid)
                raise Undelivered(f"message {message.msgid} could not be received") from error
        self._failed.discard(message.msgid)
        self._remember(message)
        self._add_recent(message)

    def _remember(self, message: Message) -> None:
        self._seen_ids[message.msgid] = None
        if len(self._seen_ids) > _MAX_SEEN:
            self._seen_ids.popitem(last=False)
        if not message.msgid.startswith(LOCAL) and message.msgid not in self._newest:
            self._newest.appendleft(message.msgid)
        if self._time is None or message.timestamp > self._time:
            self._time = message.timestamp

    def _add_recent(self, message: Message) -> None:
        target = fold(message.channel)
        self._recent.setdefault(target, deque(maxlen=_MAX_RECENT)).append(message)
        self._recent.move_to_end(target)
        if len(self._recent) > _MAX_RECENT_CHANNELS:
            self._recent.popitem(last=False)
