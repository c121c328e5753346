"""A client's socket: reads, one write per turn, a bounded send queue, an orderly end."""

import logging
import socket
from collections.abc import Callable
from typing import Protocol

from culture.config.peer_uid import socket_owner
from culture.server.net.layers import Layer, LayerError
from culture.server.net.poller import READ, WRITE, Poller

log = logging.getLogger(__name__)

_READ_SIZE = 4_096  # bytes; allocating a larger buffer costs more than a second read


class Owner(Protocol):
    """Gets what a connection reads, such as the dispatcher of a session."""

    def receive(self, data: bytes) -> None:
        """Handle bytes that the connection has read from the client."""

    def allowance(self) -> int:
        """Return how many bytes may wait for this client before it is disconnected as too slow."""

    def lost(self, reason: str) -> None:
        """Handle the loss of the connection, for ``reason``; not called if we closed it ourselves."""


class ClientConnection:
    """A client's socket, and the data that is still to be written to it.

    ``queue`` takes whole lines. Whoever appends the first one of a turn also adds the connection to the poller's list
    of those to flush at the end of the turn.
    """

    __slots__ = (
        "_backlog",
        "_layer",
        "_paused",
        "_poller",
        "_socket",
        "closing",
        "drained",
        "extra",
        "last_active",
        "owner",
        "queue",
        "read_size",
    )

    def __init__(self, sock: socket.socket, poller: Poller, layer: Layer | None = None) -> None:
        self._socket = sock
        self._layer = layer
        self._poller = poller
        self._backlog = b""
        self._paused = False
        self.queue: list[bytes] = []
        self.owner: Owner | None = None
        self.drained: Callable[[], None] | None = None  # called once a turn while nothing waits to be written
        self.extra = 0  # bytes that may wait beyond the owner's allowance, until nothing waits
        self.closing = False
        self.last_active = poller.now
        self.read_size = _READ_SIZE  # bytes read per turn at most

    def start(self, owner: Owner | None) -> None:
        """Start reading, and pass what is read to ``owner``.

        ``owner`` None: what is read is dropped, and the connection ends when the client closes it.
        """
        self.owner = owner
        self._poller.watch(self._socket.fileno(), self._ready)

    def begin(self) -> None:
        """On a connection that we opened, send the first bytes of the TLS handshake, if it has TLS."""
        if self._layer is not None:
            self._unwrap(b"", self._layer)

    def pause(self) -> None:
        """Stop reading from the socket until ``resume``."""
        self._paused = True
        self._listen()

    def resume(self) -> None:
        """Read from the socket again, after ``pause``."""
        self._paused = False
        self._listen()

    @property
    def waiting(self) -> int:
        """Return the number of bytes that wait because the socket does not take them yet."""
        return len(self._backlog)

    def peer_uid(self) -> int | None:
        """Return the uid of the client's process.

        None if that runs on another machine or cannot be determined.
        """
        owner = self.peer_owner()
        return None if owner is None else owner[0]

    def peer_owner(self) -> tuple[int, int] | None:
        """Return uid and inode of the client's own socket.

        None if that is on another machine or cannot be determined.
        """
        try:
            client, server = self._socket.getpeername()[:2], self._socket.getsockname()[:2]
            return socket_owner(client, server, runtime=self._poller.runtime)
        except OSError:
            return None

    @property
    def is_open(self) -> bool:
        """Return whether the socket is still open."""
        return self._socket.fileno() >= 0

    def close(self) -> None:
        """Read nothing more, write what is queued, and close the socket once the client has read it."""
        self.flush()
        if not self.is_open:
            return
        self.closing = True
        self.owner = self.drained = None
        self.last_active = self._poller.now  # the client may take its time to read the end
        if self._paused:
            self.resume()
        if self._layer is not None:
            self._layer.close()
            self._write(self._layer.outgoing())
        if not self._backlog:
            self._shut()

    def abort(self) -> None:
        """Close the socket at once; what is queued is lost."""
        self.owner = self.drained = None
        self.closing = True
        self.queue.clear()
        self._backlog = b""
        if self.is_open:
            self._poller.forget(self._socket.fileno())
            self._socket.close()

    def flush(self) -> None:
        """Write the queued lines.

        What the socket does not take waits; above the owner's allowance the client is disconnected.
        """
        queue = self.queue
        if not queue or self.closing:
            queue.clear()
            return
        data = queue[0] if len(queue) == 1 else b"".join(queue)
        queue.clear()
        if self._layer is not None:
            data = self._layer.encode(data)
        self._write(data)

    def _write(self, data: bytes) -> None:
        if self._backlog:
            self._backlog += data
        elif data:
            try:
                sent = self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as error:
                self._lose(error.strerror or "Write error")
                return
            self._poller.sent += sent
            if sent == len(data):
                self.extra = 0
                return
            self._backlog = data[sent:]
            self._listen()
        if self.owner is not None and len(self._backlog) > self.owner.allowance() + self.extra:
            self._lose("SendQ exceeded")

    def _ready(self, events: int) -> None:
        try:
            if events & WRITE:
                self._drain()
            if events & ~WRITE and self.is_open:
                self._read()
        except Exception:  # our bug: only this connection ends
            log.exception("connection failed")
            self._lose("Internal error")

    def _read(self) -> None:
        try:
            data = self._socket.recv(self.read_size)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error.strerror or "Read error")
            return
        if not data:
            self._lose("Connection closed")
        elif self.owner is not None:
            self.last_active = self._poller.now
            self._poller.received += len(data)
            if self._layer is None:
                self.owner.receive(data)
            else:
                self._unwrap(data, self._layer)

    def _unwrap(self, data: bytes, layer: Layer) -> None:
        """Decode data by the layer (such as TLS), and pass the result to the connection's owner.

        Bytes that the layer itself has to send, such as those of a handshake, are written to the client.
        """
        fault = None
        try:
            data = layer.decode(data)
        except LayerError as error:
            data, fault = error.data, error.reason
        self._write(layer.outgoing())
        if data and self.owner is not None:
            self.owner.receive(data)
        if fault is not None and self.owner is not None:
            self.owner.lost(fault)
            self.close()

    def _drain(self) -> None:
        if self._backlog:
            try:
                sent = self._socket.send(self._backlog)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._lose(error.strerror or "Write error")
                return
            self._poller.sent += sent
            self._backlog = self._backlog[sent:]
            if self.owner is not None:
                self.last_active = self._poller.now  # a client that reads a long answer is alive though silent
            if self._backlog:
                return
            self.extra = 0
            self._listen()
            if self.closing:
                self._shut()
        if self.drained is not None:
            self.drained()

    def _shut(self) -> None:
        # Closing a socket with unread input resets it, and the client would lose our last words.
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.abort()

    def _listen(self) -> None:
        if self.is_open:
            events = (0 if self._paused else READ) | (WRITE if self._backlog or self.drained else 0)
            self._poller.change(self._socket.fileno(), events)

    def _lose(self, reason: str) -> None:
        owner = self.owner
        self.abort()
        if owner is not None:
            owner.lost(reason)
