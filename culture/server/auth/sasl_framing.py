"""SASL messages on IRC lines: base64 in pieces of 400 characters (IRCv3 sasl-3.1)."""

import base64
from enum import Enum

PIECE = 400
LONGEST_MESSAGE = 10 * PIECE
"""Characters of base64: room for the longest possible password."""
LONGEST_TOKEN = 30 * PIECE
"""The same for a token: as many lines as an unregistered client may send at once."""

EMPTY = "+"


class Unframed(Enum):
    """Reasons why the pieces that a client sent are no SASL message; they end the exchange."""

    TOO_LONG = "one piece is longer than 400 characters"
    TOO_MUCH = "the message is longer than any that makes sense"
    GARBLED = "not base64"


class SaslInbox:
    """Joins the base64 pieces in which a client sends one SASL message."""

    __slots__ = ("_held", "_longest")

    def __init__(self, longest: int = LONGEST_MESSAGE) -> None:
        self._held = ""
        self._longest = longest

    def feed(self, piece: str) -> bytes | Unframed | None:
        """Add a piece; return the decoded message if the piece completes it, or None if more follow.

        Returns an Unframed if the pieces are no SASL message.
        """
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
    """Return a SASL message of the server as base64 pieces, one for each AUTHENTICATE line."""
    text = base64.b64encode(message).decode()
    parts = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    # A last piece of full length says that more follows: an empty one has to end the message.
    return parts if parts and len(parts[-1]) < PIECE else [*parts, EMPTY]
