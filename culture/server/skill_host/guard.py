"""The guard around a skill: catches and counts its errors, and switches a failing skill off.

A skill is code of somebody else in our process. An error in a hook or a task switches the skill off at once: it missed
an event and would be wrong from then on. An error in a verb is answered with FAIL, and only the third one switches the
skill off: one bad question must not take the skill away from everybody.
"""

import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from culture.protocol.message import Message
from culture.protocol.split import clip
from culture.server.commands import Later
from culture.server.context import Context
from culture.server.core.encode import wire
from culture.server.errors import Failed, Refused, is_end

if TYPE_CHECKING:
    from culture.server.commands import Handler

_FORGIVEN = 2  # errors of verbs that do not switch the skill off
_LONGEST_REASON = 300


class Guard:
    """The guard of one skill: counts its errors and records why it is switched off."""

    def __init__(
        self, name: str, failed: Callable[[BaseException], None], tell: Callable[[str, BaseException], None]
    ) -> None:
        self.name = name
        self.off: str | None = None
        """Why it is switched off; None while it works."""
        self._failed = failed
        self._tell = tell
        self._failures = 0

    def verb(self, handler: "Handler") -> "Handler":
        """Return the handler of a verb wrapped, so that an error is answered by FAIL.

        Without this an error would end the session.
        """

        @wraps(handler)
        def guarded(ctx: Context, message: Message) -> Any:
            return self._answered(message, partial(handler, _Guarded(ctx, self, message), message))

        return guarded

    def _answered(self, message: Message, answer: Callable[[], Any]) -> Any:
        if self.off is not None:
            raise Failed(
                message.verb, "SKILL_OFF", text=f"{self.name} is switched off after a failure; ask an operator"
            )
        try:
            outcome = answer()
        except (Refused, Failed):
            raise
        except BaseException as error:
            raise self._forgive(message, error) from error
        if not isinstance(outcome, Later):
            return outcome
        return Later(self._waited(message, outcome.work), partial(self._go_on, message, outcome.then))

    async def _waited(self, message: Message, work: Awaitable[Any]) -> Any:
        """Return the result of a Later's work; an error is returned as a ``_Raised``.

        ``_go_on`` raises it later. ``message``: the command that returned the Later.
        """
        try:
            return await work
        except (Refused, Failed) as declined:
            return _Raised(declined)
        except BaseException as error:
            return _Raised(self._forgive(message, error))

    def _go_on(self, message: Message, then: Callable[[Any], Any], result: Any) -> Any:
        if isinstance(result, _Raised):
            raise result.error
        return self._answered(message, partial(then, result))

    def rows(self, message: Message, server: str, rows: Iterable[Message]) -> Iterator[bytes]:
        """Yield the encoded lines of a long answer; if an error ends it, the last line is a FAIL.

        ``message``: the command that is answered; ``server``: the source of the FAIL.
        """
        try:
            yield from map(wire, rows)
        except BaseException as error:
            yield wire(Message("FAIL", self._forgive(message, error).params, server))

    def _forgive(self, message: Message, error: BaseException) -> Failed:
        """Count an error of a verb's handler, and return the FAIL for the client.

        Operators are told; after some errors the skill is switched off. Raises an error that ends the program.
        ``message``: the command that failed.
        """
        if is_end(error):
            raise error
        self._failures += 1
        if self._failures > _FORGIVEN:
            self._failed(error)
        else:
            self._tell(f"{message.verb} of the skill {self.name} failed: {reason(error)}", error)
        return Failed(message.verb, "INTERNAL_ERROR", text="Internal error; the operators were told")


class _Guarded(Context):
    """The context of a skill's verb, in which errors of a long answer are caught too."""

    __slots__ = ("_guard", "_message")

    def __init__(self, ctx: Context, guard: Guard, message: Message) -> None:
        super().__init__(ctx.parts, ctx.session)
        self._guard = guard
        self._message = message

    def pull(self, rows: Iterable[Message]) -> None:
        """Send the client many lines, which are produced as fast as the client reads them."""
        self.session.pull(self._guard.rows(self._message, self.router.name, rows))


class _Raised(NamedTuple):
    """An error in place of a result; the code that takes the result raises it."""

    error: Exception


def reason(error: BaseException) -> str:
    """Return an error as text for people, on one line of at most 300 bytes."""
    text = " ".join("".join(traceback.format_exception_only(error)).split())
    return clip(text, _LONGEST_REASON)
