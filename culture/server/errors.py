"""What the server declines, and why it could not start."""

from culture.protocol.numerics import Numeric


class Refused(Exception):
    """The user asked for something that we decline; told as one numeric."""

    def __init__(self, numeric: Numeric, *params: str, text: str | None = None) -> None:
        super().__init__(numeric.name, *params)
        self.numeric = numeric
        self.params = params
        self.text = text


class Failed(Exception):
    """Like Refused, told as an IRCv3 standard reply (``FAIL verb code context :text``)."""

    def __init__(self, verb: str, code: str, *context: str, text: str) -> None:
        super().__init__(verb, code, *context)
        self.params = (verb, code, *context, text)


class StartError(Exception):
    """The server cannot run here; the message says what to do about it."""
