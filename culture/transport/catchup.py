"""What was missed while there was no connection, fetched from the server's history."""

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import ExtensionVerb
from culture.transport.batches import Item
from culture.transport.dedup import Delivery
from culture.transport.history import between, by_id, by_time, has_history, page_size, talks
from culture.transport.parse_messages import LOCAL
from culture.transport.requests import lines_of
from culture.transport.session import IrcSession
from culture.transport.types import Message, NotSent, ReceiveMark

log = logging.getLogger(__name__)

OVERLAP = timedelta(minutes=15)
"""Messages may arrive late, with an older time than what is here already."""
_AHEAD = timedelta(days=1)
_ROOM = 400


def can_catch_up(session: IrcSession) -> bool:
    """Whether this server can tell what was missed."""
    return has_history(session)


class HistoryUnavailable(Exception):
    """The history cannot be read at present."""


async def catch_up(session: IrcSession, delivery: Delivery, mark: ReceiveMark | None) -> None:
    """Deliver what was missed since the mark; ``HistoryUnavailable`` when that has to wait."""
    while mark is not None and can_catch_up(session):
        if not (session.is_ours and await _by_arrival(session, delivery, mark)):
            await _by_time(session, delivery, mark)
        if not delivery.overflowed:
            return
        mark = delivery.mark or mark
        delivery.hold()


def _is_missed(message: Message, mark: ReceiveMark) -> bool:
    """Where nothing was ever received, what is older than the mark is none of it."""
    return bool(mark.msgids) or message.timestamp >= mark.time


async def _by_arrival(session: IrcSession, delivery: Delivery, mark: ReceiveMark) -> bool:
    """On a server of ours: one question for everything, in the order in which it came there; False if it cannot."""
    references = [*_fitting(mark.msgids), by_time(mark.time)]
    while True:
        try:
            items = await session.command(Line(ExtensionVerb.HISTORY.value, ("MISSED", *references)))
        except NotSent as refused:
            if refused.uncertain:
                raise
            if refused.code == "UNAVAILABLE":
                raise HistoryUnavailable(refused.reason) from refused
            log.debug("the server does not tell what was missed: %s", refused.reason)
            return False
        for message in session.reader.messages(items):
            if _is_missed(message, mark):
                delivery.missed(message)
        further = _goes_on(items)
        if not further or further == references:
            return True
        references = further


def _fitting(msgids: Sequence[str]) -> Iterator[str]:
    """References to messages of the server, as many as a line has room for."""
    room = _ROOM
    for msgid in msgids:
        room -= len(msgid.encode()) + len("msgid= ")
        if room > 0 and not msgid.startswith(LOCAL):
            yield by_id(msgid)


def _goes_on(items: list[Item]) -> list[str]:
    """The reference for the next question; none when that was all."""
    for line in lines_of(items):
        if line.verb == ExtensionVerb.HISTORYEND.value and len(line.params) > 2:
            return [line.params[1]]
    return []


class _Place:
    """A channel or somebody, read page by page."""

    def __init__(self, name: str, reference: str) -> None:
        self.name = name
        self.reference = reference
        self.page: deque[Message] = deque()
        self.ended = False

    async def fill(self, session: IrcSession) -> None:
        """Have the next message at hand, or know that there is none."""
        if self.page or self.ended:
            return
        try:
            found = await between(session, self.name, self.reference, None, page_size(session))
        except NotSent as refused:
            if refused.uncertain:
                raise
            log.info("what was missed in %s cannot be told: %s", self.name, refused.reason)
            found = []
        before, self.reference = self.reference, _after(found, self.reference)
        self.page.extend(found)
        self.ended = self.reference == before


def _after(found: list[Message], reference: str) -> str:
    if not found:
        return reference
    last = found[-1]
    return by_time(last.timestamp) if last.msgid.startswith(LOCAL) else by_id(last.msgid)


async def _by_time(session: IrcSession, delivery: Delivery, mark: ReceiveMark) -> None:
    """Elsewhere: place by place, and from all of them in the order of time, so that a mark holds for all."""
    since = mark.time - OVERLAP
    try:
        named = await talks(session, since, datetime.now(UTC) + _AHEAD)
    except NotSent as refused:
        if refused.uncertain:
            raise
        named = []
    view = session.view
    folded = {view.fold(name): name for name in (*named, *view.channels)}
    places = [_Place(name, by_time(since)) for name in folded.values()]
    while places:
        for place in places:
            await place.fill(session)
        places = [place for place in places if place.page]
        if places:
            message = min(places, key=lambda place: place.page[0].timestamp).page.popleft()
            if _is_missed(message, mark):
                delivery.missed(message)
