"""IRC without I/O: what clients and servers agree on, as plain values and functions.

| module | what it holds |
|---|---|
| ``message`` | one line as a value: parsed and formatted |
| ``stream`` | bytes to lines, and the limits of a line |
| ``numerics`` | the numeric replies with their standard texts |
| ``names``, ``channel_names`` | grammar and comparison of nicks and channels; names that look alike |
| ``modes`` | MODE strings to changes, and back |
| ``caps`` | capability negotiation |
| ``mentions`` | which users a text mentions |
| ``split`` | long text to lines that fit |
| ``text`` | the one cleaner of foreign text |
| ``vocabulary`` | our own capabilities, tags, verbs, modes and other names |
"""

from culture.protocol.message import NO_TAGS, Message, ProtocolError
from culture.protocol.numerics import Numeric
from culture.protocol.stream import LineBuffer

__all__ = ["NO_TAGS", "LineBuffer", "Message", "Numeric", "ProtocolError"]
