"""IRC without I/O: what clients and servers agree on, as plain values and functions."""

from culture_protocol.message import NO_TAGS, Message, ProtocolError
from culture_protocol.numerics import Numeric
from culture_protocol.stream import LineBuffer

__all__ = ["NO_TAGS", "LineBuffer", "Message", "Numeric", "ProtocolError"]
