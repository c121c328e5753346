"""What happened before, as a client shall get it now."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from culture.protocol.message import Message
from culture.server.core.encode import wire
from culture.server.core.ids import MICROSECONDS
from culture.server.core.labeled_response import tagged
from culture.server.core.render import iso_time, render
from culture.server.core.session import Session
from culture.skills.history.entry import Entry, event_of
from culture.skills.history.store import Kept

BATCH = "chathistory"
_numbers = count(1)


def played(session: Session, server: str, target: str, found: Sequence[Kept]) -> Iterator[bytes]:
    """The lines of these events, as a batch where the client knows batches."""
    rows = (line for _, entry in found for line in lines(session, entry))
    return enclosed(rows, server, BATCH, target) if "batch" in session.caps.enabled else rows


def replayed(session: Session, server: str, channel: str, found: Sequence[Kept]) -> Iterator[bytes]:
    """The lines of these events; without batches between two notices that tell from when they are.

    A client may know `server-time` and show the time of arrival all the same, as irssi does: old lines would look new.
    """
    if "batch" in session.caps.enabled:
        yield from played(session, server, channel, found)
        return
    messages = f"{len(found)} earlier message{'s' if len(found) != 1 else ''}"
    period = period_of(found[0].entry.at, found[-1].entry.at)
    yield wire(Message("NOTICE", (channel, f"--- {channel}: {messages}, {period} ---"), server))
    yield from played(session, server, channel, found)
    yield wire(Message("NOTICE", (channel, f"--- {channel}: end of the earlier messages ---"), server))


def period_of(first: int, last: int) -> str:
    """From when to when, given in microseconds; a day is named once."""
    (day, begin), (last_day, end) = (iso_time(at // MICROSECONDS)[:-5].split("T") for at in (first, last))
    return f"from {day} {begin} to {end if day == last_day else f'{last_day} {end}'} UTC"


def enclosed(rows: Iterable[bytes], server: str, kind: str, *params: str) -> Iterator[bytes]:
    """These lines as a batch."""
    name = f"h{next(_numbers)}"
    yield wire(Message("BATCH", (f"+{name}", kind, *params), server))
    for line in rows:
        # A message of several lines is a batch inside of this one: its lines belong to that alone.
        yield line if line.startswith(b"@batch=") else tagged(line, f"batch={name}")
    yield wire(Message("BATCH", (f"-{name}",), server))


def lines(session: Session, entry: Entry) -> list[bytes]:
    """The lines of an event, as this client gets it."""
    rendered = render(event_of(entry), session.wants, entry.account)
    return [] if rendered is None else rendered.splitlines(keepends=True)
