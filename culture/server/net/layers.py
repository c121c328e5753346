"""Byte layers between socket and session: wire format on one side, IRC lines on the other."""

from collections.abc import Sequence
from typing import Protocol


class LayerError(Exception):
    """The connection has to end; ``data`` was decoded before, ``outgoing`` has the last bytes."""

    def __init__(self, reason: str, data: bytes = b"") -> None:
        super().__init__(reason)
        self.reason = reason
        self.data = data


class Layer(Protocol):
    """Converts bytes and touches no socket; every result may be empty."""

    @property
    def is_open(self) -> bool:
        """Return whether the layer's handshake is complete; before, ``encode`` drops its data."""

    def decode(self, data: bytes) -> bytes:
        """Return lines from bytes of the wire; raise LayerError if the connection has to end."""

    def encode(self, data: bytes) -> bytes:
        """Return bytes for the wire from whole lines, after the bytes that the layer itself has to send."""

    def outgoing(self) -> bytes:
        """Return bytes that the layer itself has to send; to be called after each ``decode``."""

    def close(self) -> None:
        """End the layer's protocol; ``outgoing`` then has its last bytes."""


class Stack:
    """Several layers as one, listed from the socket upwards."""

    __slots__ = ("_goodbye", "layers")

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = tuple(layers)
        self._goodbye = b""

    @property
    def is_open(self) -> bool:
        """Return whether all handshakes are complete."""
        return all(layer.is_open for layer in self.layers)

    def decode(self, data: bytes) -> bytes:
        """Decode through all layers; data before a fault in one still passes those above it."""
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
        """Encode lines through all layers, down to the socket."""
        for layer in reversed(self.layers):
            data = layer.encode(data)
        return data

    def outgoing(self) -> bytes:
        """Return the bytes that the layers have to send, each encoded by the layers below it."""
        data, self._goodbye = self._goodbye, b""
        return data + self._pending()

    def close(self) -> None:
        """End all layers from the top, so that the last bytes of each pass the layers below it."""
        for layer in reversed(self.layers):
            layer.close()
            self._goodbye += self._pending()

    def _pending(self) -> bytes:
        data = b""
        for layer in reversed(self.layers):
            data = layer.encode(data) if data else layer.outgoing()
        return data
