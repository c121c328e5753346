"""Each message once, what was missed before what is new."""

import logging
import sqlite3
from collections import OrderedDict, deque
from datetime import datetime

from culture.transport.parse_messages import LOCAL
from culture.transport.types import MARKED, Message, OnMessage, ReceiveCursor, ReceiveMark

log = logging.getLogger(__name__)

_SEEN = 20_000
_HELD = 10_000
_KEPT, _PLACES = 500, 200
_PASSING = (OSError, sqlite3.OperationalError)
"""What is no fault of a message, such as a full disk, and gets better."""


class Undelivered(Exception):
    """Whoever receives the messages failed to; it comes again from the history."""


class Delivery:
    """Hands messages on, in order; while something missed is outstanding, what is new waits."""

    def __init__(self, on_message: OnMessage | None, cursor: ReceiveCursor | None) -> None:
        self._on_message = on_message
        self._cursor = cursor
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._failed: set[str] = set()
        self._held: list[Message] | None = None
        self._recent: OrderedDict[str, deque[Message]] = OrderedDict()
        self._newest: deque[str] = deque(maxlen=MARKED)
        self._time: datetime | None = None
        self.overflowed = False
        """More came while waiting than can be held: it has to be fetched as well."""

    @property
    def mark(self) -> ReceiveMark | None:
        """Up to where everything was received, as far as this process knows."""
        return None if self._time is None else ReceiveMark(tuple(self._newest), self._time)

    def begin_at(self, time: datetime) -> None:
        """Nothing before this time is missed, where nothing else says from when on."""
        if self._time is None:
            self._time = time

    def hold(self) -> None:
        """Keep back what is new from here on; what was kept back before is fetched anew."""
        self._held = []
        self.overflowed = False

    def release(self) -> None:
        """Hand on what was kept back; what was too much to keep is missed like the rest."""
        while self._held:
            self._deliver(self._held.pop(0))
        self._held = None
        self.overflowed = False

    def said(self, message: Message) -> None:
        """Something new."""
        if self._held is None:
            self._deliver(message)
        elif len(self._held) < _HELD:
            self._held.append(message)
        else:
            self.overflowed = True
            self._held.clear()

    def missed(self, message: Message) -> None:
        """Something from the history."""
        if self._cursor is not None and message.msgid not in self._seen and self._cursor.knows(message.msgid):
            self._note(message)
        else:
            self._deliver(message)

    def recent(self, place: str) -> list[Message]:
        """The last messages of a channel or from somebody, the oldest first."""
        return list(self._recent.get(place.lower(), ()))

    def _deliver(self, message: Message) -> None:
        if message.msgid in self._seen:
            return
        try:
            if self._on_message is not None:
                self._on_message(message)
        except Exception as error:
            log.exception("message %s from %s could not be received", message.msgid, message.sender)
            if message.msgid not in self._failed or isinstance(error, _PASSING):
                self._failed.add(message.msgid)
                raise Undelivered(f"message {message.msgid} could not be received") from error
        self._failed.discard(message.msgid)
        self._note(message)
        self._keep(message)

    def _note(self, message: Message) -> None:
        self._seen[message.msgid] = None
        if len(self._seen) > _SEEN:
            self._seen.popitem(last=False)
        if not message.msgid.startswith(LOCAL) and message.msgid not in self._newest:
            self._newest.appendleft(message.msgid)
        if self._time is None or message.timestamp > self._time:
            self._time = message.timestamp

    def _keep(self, message: Message) -> None:
        place = message.channel.lower()
        kept = self._recent.setdefault(place, deque(maxlen=_KEPT))
        kept.append(message)
        self._recent.move_to_end(place)
        if len(self._recent) > _PLACES:
            self._recent.popitem(last=False)
