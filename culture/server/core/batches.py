"""Lines that belong together (IRCv3 batch)."""

from collections.abc import Iterable, Iterator
from itertools import count

from culture.protocol.message import Message
from culture.server.core.encode import wire
from culture.server.core.session import Session

_numbers = count(1)


def batched(rows: Iterable[Message], server: str, kind: str, *params: str) -> Iterator[bytes]:
    """The rows as a batch of this type; each begins with its ``batch`` tag, and no other batch may claim it."""
    name = f"b{next(_numbers)}"
    tag = f"@batch={name} ".encode()
    yield wire(Message("BATCH", (f"+{name}", kind, *params), server))
    for row in rows:
        yield tag + wire(row)
    yield wire(Message("BATCH", (f"-{name}",), server))


_numbers = count(1)
_MOST = 2 << 20  # bytes of such lines that may wait for one client
_AROUND = 40  # bytes of the batch's tag, and of what TLS or WebSocket puts around a line


class MessageBatch:
    """Lines that belong together; a session that knows batches sees where they begin and end, once it gets one."""

    def __init__(self, server: str, kind: str, *params: str) -> None:
        self._server = server
        self._about = (kind, *params)
        self._name = f"n{next(_numbers)}"
        self._tag = f"@batch={self._name}".encode()
        self._open: dict[Session, None] = {}
        self._last: tuple[bytes, bytes] = (b"", b"")

    def send(self, session: Session, line: bytes) -> None:
        """Send a line of it."""
        connection = session.connection
        if connection.extra < _MOST:
            # A whole server's users are more than may wait for a client, and no reason to lose a slow one.
            connection.extra += len(line) + _AROUND
        if "batch" not in session.caps.enabled:
            session.push(line)
            return
        if session not in self._open:
            self._open[session] = None
            session.push(wire(Message("BATCH", (f"+{self._name}", *self._about), self._server)))
        session.push(self._tagged(line))

    def close(self) -> None:
        """That was all."""
        end = wire(Message("BATCH", (f"-{self._name}",), self._server))
        for session in self._open:
            if not session.ended:
                session.push(end)
        self._open.clear()

    def _tagged(self, line: bytes) -> bytes:
        """The line with the batch's tag; many sessions get the same one."""
        if self._last[0] is not line:
            rest = b";" + line[1:] if line.startswith(b"@") else b" " + line
            self._last = (line, self._tag + rest)
        return self._last[1]
