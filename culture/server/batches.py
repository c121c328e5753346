"""Lines that belong together (IRCv3 batch)."""

from collections.abc import Iterable, Iterator
from itertools import count

from culture.protocol.message import Message
from culture.server.wire import wire

_numbers = count(1)


def batched(rows: Iterable[Message], server: str, kind: str, *params: str) -> Iterator[bytes]:
    """The rows as a batch of this type; each begins with its ``batch`` tag, and no other batch may claim it."""
    name = f"b{next(_numbers)}"
    tag = f"@batch={name} ".encode()
    yield wire(Message("BATCH", (f"+{name}", kind, *params), server))
    for row in rows:
        yield tag + wire(row)
    yield wire(Message("BATCH", (f"-{name}",), server))
