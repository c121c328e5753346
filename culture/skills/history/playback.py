"""What happened before, as a client shall get it now."""

from collections.abc import Iterator, Sequence
from itertools import count

from culture.protocol.message import Message
from culture.server.labels import tagged
from culture.server.render import render
from culture.server.session import Session
from culture.server.wire import wire
from culture.skills.history.entry import Entry, event_of
from culture.skills.history.store import Kept

BATCH = "chathistory"
_numbers = count(1)


def played(session: Session, server: str, target: str, found: Sequence[Kept]) -> Iterator[bytes]:
    """The lines of these events, as a batch where the client knows batches."""
    if "batch" not in session.caps.enabled:
        for _, entry in found:
            yield from _lines(session, entry)
        return
    name = f"h{next(_numbers)}"
    yield wire(Message("BATCH", (f"+{name}", BATCH, target), server))
    for _, entry in found:
        for line in _lines(session, entry):
            # A message of several lines is a batch inside of this one: its lines belong to that alone.
            yield line if line.startswith(b"@batch=") else tagged(line, f"batch={name}")
    yield wire(Message("BATCH", (f"-{name}",), server))


def _lines(session: Session, entry: Entry) -> list[bytes]:
    rendered = render(event_of(entry), session.wants, entry.account)
    return [] if rendered is None else rendered.splitlines(keepends=True)
