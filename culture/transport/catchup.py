"""Catch-up after a reconnect: delivers what was missed, from the server's history.

A mark (``ReceiveMark``) says how far messages were received: the last ids and the time of the newest. Two ways lead
from there to the present:

- A server of ours numbers messages by their arrival there. ``HISTORY MISSED <ids>`` returns everything that arrived
  after the newest id that it still knows, private messages included, page by page. What came late from another
  server, with an older time, is in it because it *arrived* later.
- Other servers only sort by time (``draft/chathistory``), channel by channel. So every channel is read from
  ``OVERLAP`` before the mark, and the pages are merged by time: then the mark is true for all channels at every
  moment, even if the catch-up is interrupted. What the overlap returns twice is dropped by ``dedup``.

While this runs, ``dedup`` holds back live messages, so that missed messages come first. If more arrive than it can
hold, they are fetched in another round.
"""

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import timedelta

from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import ExtensionVerb
from culture.runtime import REAL, Runtime
from culture.transport.batches import Item
from culture.transport.dedup import Delivery
from culture.transport.history import by_id, by_time, fetch_messages, fetch_targets, has_history, page_size
from culture.transport.parse_messages import LOCAL
from culture.transport.requests import lines_of
from culture.transport.session import IrcSession
from culture.transport.types import Message, NotSent, ReceiveMark

log = logging.getLogger(__name__)

OVERLAP = timedelta(minutes=15)
"""How far before the mark to read by time: late messages carry an older time."""
_CLOCK_SKEW = timedelta(days=1)
"""The server's clock may be this far ahead of ours."""
_MAX_REFERENCES_BYTES = 400


class HistoryUnavailable(Exception):
    """The server supports history but cannot read it at present."""


async def catch_up(
    session: IrcSession, delivery: Delivery, mark: ReceiveMark | None, *, runtime: Runtime = REAL
) -> None:
    """Deliver all messages since the mark; do nothing without a mark or without a history.

    ``mark``: up to where messages were received; ``delivery`` passes them to the receiver. Raises
    ``HistoryUnavailable`` if the server cannot read its history now.
    """
    while mark is not None and has_history(session):
        if not (session.is_ours and await _by_arrival(session, delivery, mark)):
            await _by_time(session, delivery, mark, runtime=runtime)
        if not delivery.overflowed:
            return
        mark = delivery.mark or mark
        delivery.hold()


def _is_missed(message: Message, mark: ReceiveMark) -> bool:
    """Whether a message of the history was missed and so has to be delivered.

    With ids in the mark the history was read from them on, so all of it was missed; else what is not older than the
    mark's time.
    """
    return bool(mark.msgids) or message.timestamp >= mark.time


async def _by_arrival(session: IrcSession, delivery: Delivery, mark: ReceiveMark) -> bool:
    """Deliver what was missed in the order of arrival at a server of ours.

    ``mark``: up to where messages were received; ``delivery`` passes them to the receiver. Returns False if the
    server refuses ``HISTORY MISSED``, so that the caller must read by time.
    """
    references = [*_references(mark.msgids), by_time(mark.time)]
    while True:
        try:
            items = await session.command(Line(ExtensionVerb.HISTORY.value, ("MISSED", *references)))
        except NotSent as refused:
            if refused.uncertain:
                raise
            if refused.code == "UNAVAILABLE":
                raise HistoryUnavailable(refused.reason) from refused
            log.debug("the server refused HISTORY MISSED: %s", refused.reason)
            return False
        for message in session.reader.messages(items):
            if _is_missed(message, mark):
                delivery.take_missed(message)
        next_references = _next_references(items)
        if not next_references or next_references == references:
            return True
        references = next_references


def _references(msgids: Sequence[str]) -> Iterator[str]:
    """Iterate over history references (``msgid=…``) to messages, as many as fit into one line.

    Ids that this client made itself are left out: the server does not know them.
    """
    room = _MAX_REFERENCES_BYTES
    for msgid in msgids:
        room -= len(msgid.encode()) + len("msgid= ")
        if room > 0 and not msgid.startswith(LOCAL):
            yield by_id(msgid)


def _next_references(items: list[Item]) -> list[str]:
    """Return the reference at which the next page of a history begins, in a list of one.

    ``items``: the server's answer with the page before. The list is empty after the last page.
    """
    for line in lines_of(items):
        if line.verb == ExtensionVerb.HISTORYEND.value and len(line.params) > 2:
            return [line.params[1]]
    return []


class _TargetReader:
    """Reads the history of one channel or nick page by page, from ``reference`` on."""

    def __init__(self, name: str, reference: str) -> None:
        self.name = name
        self.reference = reference
        self.page: deque[Message] = deque()
        self.ended = False

    async def fill(self, session: IrcSession) -> None:
        """Fetch the next page if the current page is used up; set ``ended`` after the last page."""
        if self.page or self.ended:
            return
        try:
            messages = await fetch_messages(session, self.name, self.reference, None, page_size(session))
        except NotSent as refused:
            if refused.uncertain:
                raise
            log.info("cannot fetch what was missed in %s: %s", self.name, refused.reason)
            messages = []
        before, self.reference = self.reference, _reference_to_last(messages, self.reference)
        self.page.extend(messages)
        self.ended = self.reference == before


def _reference_to_last(messages: list[Message], reference: str) -> str:
    if not messages:
        return reference
    last = messages[-1]
    return by_time(last.timestamp) if last.msgid.startswith(LOCAL) else by_id(last.msgid)


async def _by_time(session: IrcSession, delivery: Delivery, mark: ReceiveMark, *, runtime: Runtime) -> None:
    """Deliver what was missed from the histories of all channels and nicks, merged by time.

    ``mark``: up to where messages were received; ``delivery`` passes them to the receiver.
    """
    since = mark.time - OVERLAP
    try:
        targets = await fetch_targets(session, since, runtime.utc() + _CLOCK_SKEW)
    except NotSent as refused:
        if refused.uncertain:
            raise
        targets = []
    view = session.view
    names = {view.fold(name): name for name in (*targets, *view.channels)}
    readers = [_TargetReader(name, by_time(since)) for name in names.values()]
    while readers:
        for reader in readers:
            await reader.fill(session)
        readers = [reader for reader in readers if reader.page]
        if readers:
            message = min(readers, key=lambda reader: reader.page[0].timestamp).page.popleft()
            if _is_missed(message, mark):
                delivery.take_missed(message)
