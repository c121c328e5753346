"""Encode a message of the server as bytes that fit into one line."""

from culture.protocol.message import Message
from culture.protocol.split import clip
from culture.protocol.stream import LINE_LIMIT


def wire(message: Message) -> bytes:
    """Encode a message as a line.

    If that is too long, cut its last parameter between two characters. This is for reasons, lists and replies. A text
    that a user sends is never shortened: it was refused before (417).
    """
    line = bytes(message)
    excess = len(line) - LINE_LIMIT
    if excess <= 0 or not message.params:
        return line
    *params, last = message.params
    return bytes(message._replace(params=(*params, clip(last, max(0, len(last.encode()) - excess)))))
