"""Byte layers between socket and session: wire format on one side, IRC lines on the other."""

from collections.abc import Sequence
from typing import Protocol


class LayerError(Exception):
    """The connection has to end, for ``reason``; ``data`` was decoded before the fault.

    The layer's ``outgoing`` has the last bytes for the other side.
    """

    def __init__(self, reason: str, data: bytes = b"") -> None:
        super().__init__(reason)
        self.reason = reason
        self.data = data


class Layer(Protocol):
    """Converts between bytes of the network and IRC lines, as TLS does; touches no socket.

    Each result may be empty.
    """

    @property
    def is_open(self) -> bool:
        """Return whether the layer's handshake is complete.

        Before, data given to ``encode`` is lost.
        """

    def decode(self, data: bytes) -> bytes:
        """Return bytes from the network decoded into IRC lines; incomplete data waits for more.

        Raises LayerError if the connection has to end.
        """

    def encode(self, data: bytes) -> bytes:
        """Return ``data`` (IRC lines) converted for the network, after the layer's own bytes."""

    def outgoing(self) -> bytes:
        """Return bytes that the layer itself has to send, such as a handshake.

        Call after ``decode``.
        """

    def close(self) -> None:
        """End the layer's protocol; the last bytes that it sends are then in ``outgoing``."""


class Stack:
    """Several layers that act as one, listed from the socket upwards: TLS, then WebSocket."""

    __slots__ = ("_goodbye", "layers")

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = tuple(layers)
        self._goodbye = b""

    @property
    def is_open(self) -> bool:
        """Return whether the handshakes of all layers are complete."""
        return all(layer.is_open for layer in self.layers)

    def decode(self, data: bytes) -> bytes:
        """Decode bytes from the network through all layers, from the socket upwards.

        Raises LayerError if one of them does; what was decoded before still passes the layers above it.
        """
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
        """Encode lines through all layers, from the top down to the socket."""
        for layer in reversed(self.layers):
            data = layer.encode(data)
        return data

    def outgoing(self) -> bytes:
        """Return the bytes that the layers themselves have to send, encoded by the lower layers."""
        data, self._goodbye = self._goodbye, b""
        return data + self._pending()

    def close(self) -> None:
        """End all layers from the top down, so that the last bytes of each pass the layers below it."""
        for layer in reversed(self.layers):
            layer.close()
            self._goodbye += self._pending()

    def _pending(self) -> bytes:
        data = b""
        for layer in reversed(self.layers):
            data = layer.encode(data) if data else layer.outgoing()
        return data
