"""Listening sockets, and the layers (TLS, WebSocket) that a new connection gets."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from culture.config.model import Listen
from culture.runtime import Runtime
from culture.server.errors import StartError
from culture.server.net import port_conflict
from culture.server.net.layers import Layer, Stack
from culture.server.net.poller import READ, Poller
from culture.server.net.websocket import WebSocketLayer

if TYPE_CHECKING:
    from culture.server.net.tls import TlsContexts, TlsLayer

log = logging.getLogger(__name__)

_BACKLOG = 4096
_AT_ONCE = 64  # connections accepted per turn
_BREATHER = 1.0  # seconds without accepting when descriptors run out
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Accept = Callable[[socket.socket, str, Listen], None]


class Listener:
    """A listening address; ``accept`` is called with each connection, its host and the address."""

    def __init__(self, address: Listen, poller: Poller, accept: Accept, make_room: Callable[[], bool]) -> None:
        self._poller = poller
        self._make_room = make_room
        self._accept = accept
        self._address = address
        self._socket = _bind(address, runtime=poller.runtime)

    def __str__(self) -> str:
        """Return the listener's host and port as text for the log."""
        return f"{self._address.host} port {self.port}"

    @property
    def port(self) -> int:
        """Return the port that the listener uses; if the configured one is 0, the system chose it."""
        port: int = self._socket.getsockname()[1]
        return port

    def start(self) -> None:
        """Start accepting connections."""
        self._poller.watch(self._socket.fileno(), self._ready)

    def stop(self) -> None:
        """Stop accepting connections, and close the listening socket."""
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
                self._back_off(error)
                return
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accept(accepted, _host(address[0]), self._address)

    def _back_off(self, error: OSError) -> None:
        if error.errno not in _OUT_OF_DESCRIPTORS:
            log.warning("cannot accept: %s", error.strerror)
            return
        log.error("cannot accept: %s; trying again in %s s", error.strerror, _BREATHER)
        self._poller.change(self._socket.fileno(), 0)
        asyncio.get_running_loop().call_later(_BREATHER, self._again)

    def _again(self) -> None:
        if self._socket.fileno() >= 0:
            self._poller.change(self._socket.fileno(), READ)


def _bind(address: Listen, *, runtime: Runtime) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = runtime.new_socket(family)
    listening.setblocking(False)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise StartError(port_conflict.explain(error, address.host, address.port)) from error
    return listening


def _host(address: str) -> str:
    # A host that begins with a colon would count as the last parameter of a line.
    host = address.partition("%")[0].removeprefix("::ffff:")
    return f"0{host}" if host.startswith(":") else host


class Wrapped(NamedTuple):
    """The layers (TLS, WebSocket) of a new connection as one, and its TLS layer.

    None without any.
    """

    layer: Layer | None
    tls: "TlsLayer | None"


class Wrapping:
    """Makes the layers (TLS, WebSocket) of new connections, with certificates that it has read."""

    def __init__(self, listen: Sequence[Listen]) -> None:
        self._contexts = _contexts(listen)

    def wrap(self, address: Listen) -> Wrapped:
        """Return the layers of a new connection to this address: TLS at the socket, then WebSocket."""
        layers: list[Layer] = []
        tls = None
        if address.tls is not None and self._contexts is not None:
            # A browser would ask its user for a certificate.
            tls = self._contexts.layer(address.tls, ask_for_certificate=address.websocket is None)
            layers.append(tls)
        if address.websocket is not None:
            layers.append(WebSocketLayer(address.websocket.origins))
        if len(layers) > 1:
            return Wrapped(Stack(layers), tls)
        return Wrapped(layers[0] if layers else None, tls)

    def reload(self) -> None:
        """Read the certificates again, for connections that are accepted from now on."""
        if self._contexts is not None:
            self._contexts.reload()


def _contexts(listen: Sequence[Listen]) -> "TlsContexts | None":
    settings = [each.tls for each in listen if each.tls is not None]
    if not settings:
        return None
    # OpenSSL takes longer to load than the rest of the server: loaded only if TLS is configured.
    contexts: TlsContexts = import_module("culture.server.net.tls").TlsContexts(settings)
    return contexts
