"""A message of the server's as bytes that fit into a line."""

from culture.protocol.message import Message
from culture.protocol.split import clip
from culture.protocol.stream import LINE_LIMIT


def wire(message: Message) -> bytes:
    """The line; where it would be too long its last parameter is shortened, between two characters.

    What people say is never shortened: it is refused before (417). This is for reasons, lists and replies.
    """
    line = bytes(message)
    excess = len(line) - LINE_LIMIT
    if excess <= 0 or not message.params:
        return line
    *params, last = message.params
    return bytes(message._replace(params=(*params, clip(last, max(0, len(last.encode()) - excess)))))
