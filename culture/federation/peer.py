"""A link with its socket."""

import asyncio
import logging
from collections.abc import Callable

from culture.config.links import LinkConfig as Settings
from culture.federation.core import Core
from culture.federation.link import Link
from culture.protocol.message import ProtocolError
from culture.protocol.stream import LineBuffer
from culture.runtime import REAL, Runtime
from culture.server.net.connection import ClientConnection
from culture.server.net.poller import Flushable

log = logging.getLogger(__name__)

_LONGEST_LINE = 1 << 20
_READ_SIZE = 1 << 15  # a server says what many clients do, and whom it tells are written to once a turn
_QUEUE = 32 << 20  # bytes that may wait for a slow peer; beyond that the link is cut, and what is missing comes later


class Peer:
    """Owns the connection: bytes to lines to the link, and back."""

    def __init__(
        self,
        core: Core,
        connection: ClientConnection,
        dirty: list[Flushable],
        lost: Callable[["Peer", str], None],
        settings: Settings | None = None,
        runtime: Runtime = REAL,
    ) -> None:
        self.connection = connection
        connection.read_size = _READ_SIZE
        self._dirty = dirty
        self._lost = lost
        self._buffer = LineBuffer(_LONGEST_LINE)
        self.link = Link(core, self._send, self._close, settings)
        self.certificate: Callable[[], str | None] = lambda: None
        self.after: Callable[[Peer], None] = lambda peer: None
        """Called when all lines of a read have been taken."""
        self.address = ""
        """Where it came from; empty where we dialled it."""
        self.is_encrypted = False
        self.decided = asyncio.Event()
        """Set once the link stands, or has ended."""
        self.asked = False
        self.since = runtime.now()
        self.received = self.sent = 0

    def receive(self, data: bytes) -> None:
        """Take these bytes."""
        self.asked = False
        try:
            if b"\0" in data:
                raise ProtocolError("NUL cannot be part of a line")
            lines = self._buffer.feed(data)
        except ProtocolError as error:
            self.link.end(f"Protocol error: {error}")
            return
        for raw in lines:
            self.received += 1
            try:
                self.link.take(raw.decode())
            except (UnicodeDecodeError, ProtocolError) as error:
                self.link.end(f"Protocol error: {error}")
                return
            if not self.connection.is_open or self.connection.closing:
                return
        self.link.answered.clear()
        self.after(self)

    def allowance(self) -> int:
        """How many bytes may wait."""
        return _QUEUE

    def lost(self, reason: str) -> None:
        """The connection is gone."""
        self.link.why = self.link.why or reason
        self._lost(self, reason)

    def _send(self, line: bytes) -> None:
        queue = self.connection.queue
        if not queue:
            self._dirty.append(self.connection)
        queue.append(line)
        self.sent += 1

    def _close(self, reason: str) -> None:
        self.connection.close()
        self._lost(self, reason)
