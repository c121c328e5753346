"""Errors of the server: requests it refuses, reasons why it cannot start, and cancellation."""

from culture.protocol.numerics import Numeric


class Refused(Exception):
    """A request that the server refuses; the client gets one numeric as the answer."""

    def __init__(self, numeric: Numeric, *params: str, text: str | None = None) -> None:
        super().__init__(numeric.name, *params)
        self.numeric = numeric
        self.params = params
        self.text = text


class Failed(Exception):
    """A request that the server refuses, answered by an IRCv3 standard reply.

    The reply is ``FAIL verb code context :text``.
    """

    def __init__(self, verb: str, code: str, *context: str, text: str) -> None:
        super().__init__(verb, code, *context)
        self.params = (verb, code, *context, text)


class StartError(Exception):
    """The server cannot start; the exception's text tells people what to do."""


def is_end(error: BaseException) -> bool:
    """Return whether the error ends the program or the running task: no failure of the code."""
    import asyncio  # imported here, so that commands without a loop start faster

    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | GeneratorExit)
