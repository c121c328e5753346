"""TCP sockets in memory, and the flow of bytes between two of them.

A connection is two flows, one for each direction. What is sent goes into the flow's queue, and from there in order, a
piece at a time, to the other end: late, split at random places or joined with what comes after it. The end of a stream
(FIN) moves in the queue behind the data; a reset (RST) overtakes it.
"""

import enum
import errno
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.poll import SimPollSet
    from tests.simulation.world import Host

READ, WRITE, ERROR, HANG_UP = 1, 4, 8, 16  # EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP
_SPLIT = 0.15
_SHORT_WRITE = 0.02


class End(enum.Enum):
    """What may come behind the data of a flow."""

    CLOSED = "closed"
    RESET = "reset"


def _reset() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


class Flow:
    """One direction of a connection."""

    def __init__(self, source: "SimSocket", target: "SimSocket") -> None:
        self.source, self.target = source, target
        self.is_held = False
        self.unacknowledged = 0
        """Bytes that fill the sender's buffer."""
        self._network = source.host.world.network
        self._items: deque[bytes | End] = deque()
        self._is_moving = False
        self._late = 0  # bytes that arrived, whose acknowledgement cannot come back

    def put(self, item: bytes | End) -> None:
        """Send something behind what is on its way; a reset overtakes it."""
        if item is End.RESET:
            self._items.clear()
        elif isinstance(item, bytes):
            self.unacknowledged += len(item)
        self._items.append(item)
        self._move()

    def drop(self) -> None:
        """Lose everything that is on its way."""
        self._items.clear()

    def resume(self) -> None:
        """Continue after the network has changed."""
        if self._late and self._can_acknowledge():
            self._acknowledge(0)
        elif self._late:
            self._network.hold(self)  # something else has changed
        self._move()

    def _can_acknowledge(self) -> bool:
        return self._network.passes(self.target.host.machine, self.source.host.machine)

    def _move(self) -> None:
        if self._is_moving or not self._items:
            return
        if not self._network.passes(self.source.host.machine, self.target.host.machine):
            self._network.hold(self)
            return
        self._is_moving = True
        self._network.world.call_later(self._network.delay(), self._arrive)

    def _arrive(self) -> None:
        self._is_moving = False
        if not self._items:
            return
        if not self._network.passes(self.source.host.machine, self.target.host.machine):
            self._network.hold(self)
            return
        target = self.target
        if not target.is_open or not target.host.is_alive:
            # Nobody there knows of this connection any more: its machine answers with a reset.
            is_data = isinstance(self._items[0], bytes)
            self._items.clear()
            if is_data:
                self.source.fail(_reset())
            return
        item = self._items.popleft()
        if item is End.RESET:
            target.fail(_reset())
        elif item is End.CLOSED:
            target.is_ended = True
            target.changed()
        else:
            self._deliver(item)
        self._move()

    def _deliver(self, data: bytes) -> None:
        chance, items = self._network.chance, self._items
        if len(data) > 1 and chance.random() < _SPLIT:
            size = chance.randrange(1, len(data))
            items.appendleft(data[size:])
            data = data[:size]
        else:
            while items and isinstance(items[0], bytes) and len(data) < self._network.buffer:
                data += items.popleft()
        self._network.world.note("data", self.source.host.name, self.target.host.name, data)
        self.target.received += data
        self.target.changed()
        if self._can_acknowledge():
            self._acknowledge(len(data))
        else:
            self._late += len(data)
            self._network.hold(self)

    def _acknowledge(self, size: int) -> None:
        was_full = self.unacknowledged >= self._network.buffer
        self.unacknowledged -= size + self._late
        self._late = 0
        if was_full:
            self.source.changed()


class SimSocket:
    """One end of a connection, or a listening socket, with the methods of ``socket.socket`` that the product uses."""

    def __init__(self, host: "Host") -> None:
        self.host = host
        self.world = host.world
        self.fd = self.world.number()
        host.sockets[self.fd] = self
        self.is_open = True
        self.is_ended = False
        """Whether the other end has sent its last byte, and we have received it."""
        self.error: OSError | None = None
        self.received = bytearray()
        self.backlog: deque[SimSocket] = deque()
        self.local: tuple[str, int] = ("0.0.0.0", 0)
        self.peer: tuple[str, int] = ("0.0.0.0", 0)
        self.flow: Flow | None = None
        self.other: SimSocket | None = None
        self.on_change: Callable[[], object] | None = None
        self._poll_set: SimPollSet | None = None
        self._events = 0
        self._is_shut = False

    def __hash__(self) -> int:
        return self.fd

    def __eq__(self, other: object) -> bool:
        return self is other

    def join(self, other: "SimSocket") -> None:
        """Connect this end with the other one."""
        self.other, other.other = other, self
        self.flow, other.flow = Flow(self, other), Flow(other, self)

    def fileno(self) -> int:
        return self.fd if self.is_open else -1

    def setblocking(self, flag: bool) -> None:
        pass

    def setsockopt(self, *args: Any) -> None:
        pass

    def getsockname(self) -> tuple[str, int]:
        return self.local

    def getpeername(self) -> tuple[str, int]:
        if self.other is None:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        return self.peer

    def bind(self, address: tuple[str, int]) -> None:
        if address in self.world.network.listening:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        self.local = address

    def listen(self, backlog: int = 0) -> None:
        self.world.network.listening[self.local] = self

    def accept(self) -> "tuple[SimSocket, tuple[str, int]]":
        if not self.backlog:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        accepted = self.backlog.popleft()
        return accepted, accepted.peer

    def send(self, data: bytes | memoryview) -> int:
        self._raise_error()
        if self._is_shut or not self.is_open or self.flow is None:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        room = self.world.network.buffer - self.flow.unacknowledged
        if room <= 0:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        taken = bytes(data[:room])
        chance = self.world.network.chance
        if len(taken) > 1 and chance.random() < _SHORT_WRITE:
            taken = taken[: chance.randrange(1, len(taken))]
        self.flow.put(taken)
        return len(taken)

    def recv(self, size: int) -> bytes:
        if not self.is_open:
            raise OSError(errno.EBADF, "Bad file descriptor")
        if self.received:
            data = bytes(self.received[:size])
            del self.received[:size]
            return data
        self._raise_error()
        if self.is_ended:
            return b""
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    def _raise_error(self) -> None:
        if self.error is not None:
            raise self.error

    def shutdown(self, how: int) -> None:
        if self.flow is None or self.error is not None or not self.is_open:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        if not self._is_shut:
            self._is_shut = True
            self.flow.put(End.CLOSED)

    def close(self) -> None:
        """Close the socket; the peer gets a reset if something was not read, as from a real one."""
        if not self.is_open:
            return
        self._forget()
        if self.flow is not None and self.error is None:
            if self.received:
                self.flow.put(End.RESET)
            elif not self._is_shut:
                self.flow.put(End.CLOSED)
        for waiting in self.backlog:
            waiting.close()

    def vanish(self) -> None:
        """The machine has lost power: the peer hears nothing of it."""
        self._forget()
        if self.flow is not None:
            self.flow.drop()

    def _forget(self) -> None:
        self.is_open = False
        self.host.sockets.pop(self.fd, None)
        if self.world.network.listening.get(self.local) is self:
            del self.world.network.listening[self.local]

    def reset(self) -> None:
        """Break the connection from outside: both ends get an error, and what is on its way is lost."""
        assert self.other is not None
        for end in (self, self.other):
            if end.flow is not None:
                end.flow.drop()
            end.received.clear()
            end.fail(_reset())

    def fail(self, error: OSError) -> None:
        """End the connection on this side with an error."""
        self.error = error
        self.changed()

    @property
    def is_hung_up(self) -> bool:
        """Return whether both directions are closed, or the connection has failed (EPOLLHUP of a real socket)."""
        return self.error is not None or (self.is_ended and self._is_shut)

    @property
    def ready(self) -> int:
        """Return the events of epoll that are true now and were asked for."""
        if not self.is_open:
            return 0
        found = READ if self.backlog or self.received or self.is_ended else 0
        if self.error is not None:
            found |= READ | ERROR | HANG_UP
        elif self.flow is not None and self.flow.unacknowledged < self.world.network.buffer:
            found |= WRITE
        return found & (self._events | ERROR | HANG_UP)

    def watch(self, poll_set: "SimPollSet | None", events: int) -> None:
        """Tell this set from now on when one of these events is true."""
        self._poll_set, self._events = poll_set, events

    def changed(self) -> None:
        """Tell whoever waits for this socket that something is different."""
        if self._poll_set is not None:
            self._poll_set.look()
        if self.on_change is not None:
            self.on_change()
