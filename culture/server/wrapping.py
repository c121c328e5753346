"""Which layers a listener puts around its connections."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from culture.config.model import Listen
from culture.server.layers import Layer, Stack
from culture.server.layers.websocket import WebSocketLayer

if TYPE_CHECKING:
    from culture.server.layers.tls import TlsContexts, TlsLayer


class Wrapped(NamedTuple):
    """The layer of a new connection, if it has one, and the TLS in it."""

    layer: Layer | None
    tls: "TlsLayer | None"


class Wrapping:
    """Makes layers; the certificates are read at the start and again by ``reload``."""

    def __init__(self, listen: Sequence[Listen]) -> None:
        self._contexts = _contexts(listen)

    def wrap(self, address: Listen) -> Wrapped:
        """What goes around a new connection to this address: TLS next to the socket, WebSocket in it."""
        layers: list[Layer] = []
        tls = None
        if address.tls is not None and self._contexts is not None:
            # A browser would bother its reader with the question.
            tls = self._contexts.layer(address.tls, ask_for_certificate=address.websocket is None)
            layers.append(tls)
        if address.websocket is not None:
            layers.append(WebSocketLayer(address.websocket.origins))
        if len(layers) > 1:
            return Wrapped(Stack(layers), tls)
        return Wrapped(layers[0] if layers else None, tls)

    def reload(self) -> None:
        """Read the certificates again, for connections made from now on."""
        if self._contexts is not None:
            self._contexts.reload()


def _contexts(listen: Sequence[Listen]) -> "TlsContexts | None":
    wanted = [each.tls for each in listen if each.tls is not None]
    if not wanted:
        return None
    # OpenSSL takes longer to load than the rest of the server: only those who use it wait for it.
    contexts: TlsContexts = import_module("culture.server.layers.tls").TlsContexts(wanted)
    return contexts
