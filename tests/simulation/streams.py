"""asyncio's streams on simulated sockets, for programs that are plain asyncio: clients and the daemons of agents.

``asyncio.open_connection``, ``start_unix_server`` and ``open_unix_connection`` work unchanged on a loop with these
methods. A Unix socket is a connection within the machine, found by its path.
"""

import asyncio
import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.simulation.sockets import SimSocket

if TYPE_CHECKING:
    from tests.simulation.world import Host

Factory = Callable[[], Any]
_READ_SIZE = 1 << 16


class SimTransport(asyncio.Transport):
    """A transport on a simulated socket."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: SimSocket, protocol: Any) -> None:
        super().__init__()
        self._loop, self._sock, self._protocol = loop, sock, protocol
        self._unsent = bytearray()
        self._is_closing = self._has_ended = self._is_paused = self._is_eof_written = self._is_pending = False
        sock.on_change = self._later
        protocol.connection_made(self)
        self._later()

    def _later(self) -> None:
        if not self._is_pending and not self._has_ended:
            self._is_pending = True
            self._loop.call_soon(self._work)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": self._sock.peer, "sockname": self._sock.local, "socket": self._sock}.get(name, default)

    def is_closing(self) -> bool:
        return self._is_closing

    def get_protocol(self) -> Any:
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def is_reading(self) -> bool:
        return not self._is_paused

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._later()

    def write(self, data: Any) -> None:
        if not self._has_ended and not self._is_closing:
            self._unsent += data
            self._send()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._is_eof_written = True
        self._send()

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._loop.call_soon(self._send)

    def abort(self) -> None:
        self._end(None)

    def _work(self) -> None:
        self._is_pending = False
        self._send()
        while not (self._has_ended or self._is_paused or self._is_closing):
            try:
                data = self._sock.recv(_READ_SIZE)
            except BlockingIOError:
                return
            except OSError as error:
                self._end(error)
                return
            if data:
                self._protocol.data_received(data)
            else:
                if not self._protocol.eof_received():
                    self.close()
                return

    def _send(self) -> None:
        if self._has_ended:
            return
        try:
            while self._unsent:
                sent = self._sock.send(bytes(self._unsent))
                del self._unsent[:sent]
            if self._is_eof_written and not self._is_closing:
                self._sock.shutdown(1)
        except BlockingIOError:
            return
        except OSError as error:
            self._end(error)
            return
        if self._is_closing:
            self._end(None)

    def _end(self, error: OSError | None) -> None:
        if not self._has_ended:
            self._has_ended = self._is_closing = True
            self._sock.on_change = None
            self._sock.close()
            self._loop.call_soon(self._protocol.connection_lost, error)


class SimServer(asyncio.AbstractServer):
    """A listening Unix socket."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: SimSocket, factory: Factory) -> None:
        self._loop, self._sock, self._factory = loop, sock, factory
        self.sockets = (sock,)
        sock.on_change = lambda: loop.call_soon(self._accept)

    def _accept(self) -> None:
        while self._sock.is_open and self._sock.backlog:
            accepted, _ = self._sock.accept()
            SimTransport(self._loop, accepted, self._factory())

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def is_serving(self) -> bool:
        return self._sock.is_open

    def close(self) -> None:
        self._sock.close()

    async def start_serving(self) -> None:
        pass

    async def serve_forever(self) -> None:
        await asyncio.Event().wait()

    async def wait_closed(self) -> None:
        pass


class StreamMethods:
    """The methods of an event loop that make transports and servers."""

    host: "Host"

    async def create_connection(
        self, protocol_factory: Factory, host: Any = None, port: Any = None, **options: Any
    ) -> tuple[SimTransport, Any]:
        """Connect to a port, or take over a connected socket (``sock``)."""
        sock = options.get("sock")
        if sock is None:
            sock = SimSocket(self.host)
            try:
                await self.host.world.network.connect(sock, (host, port))
            except BaseException:
                sock.close()
                raise
        protocol = protocol_factory()
        return SimTransport(self, sock, protocol), protocol  # type: ignore[arg-type]

    async def create_unix_server(self, protocol_factory: Factory, path: Any = None, **options: Any) -> SimServer:
        """Listen on a path of this machine."""
        sock = SimSocket(self.host)
        sock.bind((f"{self.host.name}:{path}", 0))
        sock.listen()
        return SimServer(self, sock, protocol_factory)  # type: ignore[arg-type]

    async def create_unix_connection(
        self, protocol_factory: Factory, path: Any = None, **options: Any
    ) -> tuple[SimTransport, Any]:
        """Connect to a path of this machine."""
        network = self.host.world.network
        listener = network.listening.get((f"{self.host.name}:{path}", 0))
        await asyncio.sleep(network.delay())
        if listener is None or not listener.is_open:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        sock, other = SimSocket(self.host), SimSocket(listener.host)
        sock.join(other)
        listener.backlog.append(other)
        listener.changed()
        protocol = protocol_factory()
        return SimTransport(self, sock, protocol), protocol  # type: ignore[arg-type]
