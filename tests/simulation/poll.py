"""The poll set of a host, in the place of ``select.epoll``."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.loop import SimLoop
    from tests.simulation.sockets import SimSocket
    from tests.simulation.world import Host


class SimPollSet:
    """Reports ready sockets, level-triggered as epoll; their order is random."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._fd = host.world.number()
        self._sockets: dict[int, SimSocket] = {}
        self._loop: SimLoop | None = None
        self._call: Callable[[], object] = lambda: None
        self._is_pending = False
        host.poll_sets[self._fd] = self

    def fileno(self) -> int:
        """Return the number by which the event loop knows the set."""
        return self._fd

    def close(self) -> None:
        """Watch nothing any more."""
        self._sockets.clear()

    def register(self, fd: int, eventmask: int, /) -> None:
        """Watch a socket for these events."""
        sock = self._host.sockets[fd]
        self._sockets[fd] = sock
        sock.watch(self, eventmask)
        self.look()

    def modify(self, fd: int, eventmask: int, /) -> None:
        """Watch a socket for these events from now on."""
        self._sockets[fd].watch(self, eventmask)
        self.look()

    def unregister(self, fd: int, /) -> None:
        """Stop watching a socket."""
        self._sockets.pop(fd).watch(None, 0)

    def poll(self, timeout: float | None = None, maxevents: int = -1, /) -> list[tuple[int, int]]:
        """Return the events that are true now; the world does the waiting."""
        found = [(fd, ready) for fd, sock in self._sockets.items() if (ready := sock.ready)]
        if len(found) > 1:
            self._host.world.network.chance.shuffle(found)
        return found if maxevents < 0 else found[:maxevents]

    def attach(self, loop: "SimLoop", call: Callable[[], object]) -> None:
        """Let the loop call a function while a socket is ready."""
        self._loop, self._call = loop, call
        self.look()

    def detach(self) -> bool:
        """Call nothing any more."""
        self._loop = None
        return True

    def look(self) -> None:
        """Have the function called if a socket is ready."""
        if self._loop is not None and not self._is_pending and any(sock.ready for sock in self._sockets.values()):
            self._is_pending = True
            self._loop.call_soon(self._serve)

    def _serve(self) -> None:
        self._is_pending = False
        if self._loop is not None:
            self._call()
            self.look()
