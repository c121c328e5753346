"""Byte layers between a socket and a session: what the wire has on one side, plain IRC lines on the other."""

from collections.abc import Sequence
from typing import Protocol


class LayerError(Exception):
    """The connection has to end; ``data`` is what had been decoded before, and ``outgoing`` has the last words."""

    def __init__(self, reason: str, data: bytes = b"") -> None:
        super().__init__(reason)
        self.reason = reason
        self.data = data


class Layer(Protocol):
    """Turns bytes into bytes and touches no socket; whatever it returns may be empty."""

    @property
    def is_open(self) -> bool:
        """Is the handshake complete? Before that nothing can be said: ``encode`` drops it."""

    def decode(self, data: bytes) -> bytes:
        """From the wire to lines with CRLF; raises LayerError when the connection has to end."""

    def encode(self, data: bytes) -> bytes:
        """Whole lines with CRLF, to the wire; what the layer itself had to write comes first."""

    def outgoing(self) -> bytes:
        """What the layer itself has to write: handshake, pong, alert. To be asked for after each ``decode``."""

    def close(self) -> None:
        """Say goodbye in the layer's own way; ``outgoing`` has it."""


class Stack:
    """Several layers as one, the one next to the socket first."""

    __slots__ = ("_goodbye", "layers")

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = tuple(layers)
        self._goodbye = b""

    @property
    def is_open(self) -> bool:
        """Are all handshakes complete?"""
        return all(layer.is_open for layer in self.layers)

    def decode(self, data: bytes) -> bytes:
        """Through all layers; what came before a fault in one still goes through those above it."""
        fault: LayerError | None = None
        for layer in self.layers:
            try:
                data = layer.decode(data)
            except LayerError as error:
                data, fault = error.data, fault or error
        if fault is not None:
            raise LayerError(fault.reason, data)
        return data

    def encode(self, data: bytes) -> bytes:
        """Through all layers, the way back."""
        for layer in reversed(self.layers):
            data = layer.encode(data)
        return data

    def outgoing(self) -> bytes:
        """What the layers have to write, each one's wrapped by those below it."""
        data, self._goodbye = self._goodbye, b""
        return data + self._pending()

    def close(self) -> None:
        """Say goodbye from the top: a layer's last words are wrapped before the one below it says its own."""
        for layer in reversed(self.layers):
            layer.close()
            self._goodbye += self._pending()

    def _pending(self) -> bytes:
        data = b""
        for layer in reversed(self.layers):
            data = layer.encode(data) if data else layer.outgoing()
        return data
