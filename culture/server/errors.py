"""What the server declines, why it could not start, and what is nobody's mistake."""

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


def is_end(error: BaseException) -> bool:
    """Is it the program or the running task that is being ended, and no mistake of what was called?"""
    import asyncio  # commands that wait for nothing come without it

    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | GeneratorExit)
