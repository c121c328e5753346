"""Users who go or come back all at once, as a link between two servers breaks or heals (IRCv3 netsplit, netjoin)."""

from itertools import count

from culture.protocol.message import Message
from culture.server.session import Session
from culture.server.wire import wire

_numbers = count(1)
_MOST = 2 << 20  # bytes of such lines that may wait for one client
_AROUND = 40  # bytes of the batch's tag, and of what TLS or WebSocket puts around a line


class Batch:
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
