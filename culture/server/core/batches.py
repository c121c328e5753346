"""IRCv3 batches: send related lines so that a client can tell where they begin and end."""

from collections.abc import Iterable, Iterator
from itertools import count

from culture.protocol.message import Message
from culture.server.core.encode import wire
from culture.server.core.session import Session

_numbers = count(1)


def batched(rows: Iterable[Message], server: str, kind: str, *params: str) -> Iterator[bytes]:
    """Yield the encoded rows as an IRCv3 batch of type ``kind``, from opening to closing line.

    ``server``: the source of these two lines; ``params``: the parameters of the batch. Each row gets the ``batch``
    tag as its first tag.
    """
    name = f"b{next(_numbers)}"
    tag = f"@batch={name} ".encode()
    yield wire(Message("BATCH", (f"+{name}", kind, *params), server))
    for row in rows:
        yield tag + wire(row)
    yield wire(Message("BATCH", (f"-{name}",), server))


_MOST = 2 << 20  # extra bytes of batch lines that may be queued for one client
_OVERHEAD = 40  # bytes per line: the batch tag and the TLS or WebSocket frame


class MessageBatch:
    """A batch that many sessions receive.

    A session with the ``batch`` capability gets the opening line before its first line of the batch, and the closing
    line from ``close``. Other sessions get the plain lines.
    """

    def __init__(self, server: str, kind: str, *params: str) -> None:
        self._server = server
        self._params = (kind, *params)
        self._name = f"n{next(_numbers)}"
        self._tag = f"@batch={self._name}".encode()
        self._open: dict[Session, None] = {}
        self._last: tuple[bytes, bytes] = (b"", b"")

    def send(self, session: Session, line: bytes) -> None:
        """Send one line of the batch to a session, and raise its queue limit by the line's length."""
        connection = session.connection
        if connection.extra < _MOST:
            # A burst of all users of a server exceeds the queue limit, and must not disconnect a slow client.
            connection.extra += len(line) + _OVERHEAD
        if "batch" not in session.caps.enabled:
            session.push(line)
            return
        if session not in self._open:
            self._open[session] = None
            session.push(wire(Message("BATCH", (f"+{self._name}", *self._params), self._server)))
        session.push(self._tagged(line))

    def close(self) -> None:
        """Send the closing line to every session that received the batch's opening line."""
        end = wire(Message("BATCH", (f"-{self._name}",), self._server))
        for session in self._open:
            if not session.ended:
                session.push(end)
        self._open.clear()

    def _tagged(self, line: bytes) -> bytes:
        """Return the line with the batch tag added.

        The last result is kept, since the next session mostly gets the same line.
        """
        if self._last[0] is not line:
            rest = b";" + line[1:] if line.startswith(b"@") else b" " + line
            self._last = (line, self._tag + rest)
        return self._last[1]
