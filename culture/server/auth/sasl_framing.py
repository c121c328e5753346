"""SASL messages on IRC lines: base64 in pieces of 400 characters (IRCv3 sasl-3.1, "The AUTHENTICATE Command")."""

import base64
from enum import Enum

PIECE = 400
LONGEST_MESSAGE = 10 * PIECE
"""In characters of base64: room for the longest password there may be."""
LONGEST_TOKEN = 30 * PIECE
"""The same for a token of an issuer; as many lines as a client may send at once before it is registered."""

EMPTY = "+"


class Unframed(Enum):
    """Why what a client sent is no SASL message; the exchange has failed."""

    TOO_LONG = "one piece is longer than 400 characters"
    TOO_MUCH = "the message is longer than any that makes sense"
    GARBLED = "not base64"


class SaslInbox:
    """Puts the pieces of a client's message together."""

    __slots__ = ("_held", "_longest")

    def __init__(self, longest: int = LONGEST_MESSAGE) -> None:
        self._held = ""
        self._longest = longest

    def feed(self, piece: str) -> bytes | Unframed | None:
        """The message once it is complete, None until then."""
        if len(piece) > PIECE:
            return self._failed(Unframed.TOO_LONG)
        text = self._held + ("" if piece == EMPTY else piece)
        if len(text) > self._longest:
            return self._failed(Unframed.TOO_MUCH)
        if len(piece) == PIECE:
            self._held = text
            return None
        self._held = ""
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:
            return Unframed.GARBLED

    def _failed(self, why: Unframed) -> Unframed:
        self._held = ""
        return why


def pieces(message: bytes) -> list[str]:
    """A message of the server as the parameters of AUTHENTICATE lines."""
    text = base64.b64encode(message).decode()
    found = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    # A whole last piece says that more comes, so an empty one has to end the message.
    return found if found and len(found[-1]) < PIECE else [*found, EMPTY]
