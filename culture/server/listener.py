"""Listening sockets: a connection that comes in becomes a session."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

from culture.config.model import Listen
from culture.server import ports
from culture.server.errors import StartError
from culture.server.poller import READ, Poller

log = logging.getLogger(__name__)

_BACKLOG = 4096
_AT_ONCE = 64
_BREATHER = 1.0
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Accept = Callable[[socket.socket, str, Listen], None]


class Listener:
    """One address; every connection is handed on with the host it came from."""

    def __init__(self, address: Listen, poller: Poller, accept: Accept, make_room: Callable[[], bool]) -> None:
        self._poller = poller
        self._make_room = make_room
        self._accept = accept
        self._address = address
        self._socket = _bind(address)

    def __str__(self) -> str:
        """The address in use."""
        return f"{self._address.host} port {self.port}"

    @property
    def port(self) -> int:
        """The port in use, also where any free one was asked for."""
        port: int = self._socket.getsockname()[1]
        return port

    def start(self) -> None:
        """Accept from now on."""
        self._poller.watch(self._socket.fileno(), self._ready)

    def stop(self) -> None:
        """Accept no more."""
        if self._socket.fileno() >= 0:
            self._poller.forget(self._socket.fileno())
            self._socket.close()

    def _ready(self, _events: int) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno in _OUT_OF_DESCRIPTORS and self._make_room():
                    continue
                self._rest(error)
                return
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accept(accepted, _host(address[0]), self._address)

    def _rest(self, error: OSError) -> None:
        if error.errno not in _OUT_OF_DESCRIPTORS:
            log.warning("cannot accept: %s", error.strerror)
            return
        log.error("cannot accept: %s; trying again in %s s", error.strerror, _BREATHER)
        self._poller.change(self._socket.fileno(), 0)
        asyncio.get_running_loop().call_later(_BREATHER, self._again)

    def _again(self) -> None:
        if self._socket.fileno() >= 0:
            self._poller.change(self._socket.fileno(), READ)


def _bind(address: Listen) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setblocking(False)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise StartError(ports.explain(error, address.host, address.port)) from error
    return listening


def _host(address: str) -> str:
    # A host that begins with a colon would end the parameters of a line.
    host = address.partition("%")[0].removeprefix("::ffff:")
    return f"0{host}" if host.startswith(":") else host
