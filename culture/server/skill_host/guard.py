"""What a skill wrote is run here, so that its failures stay its own."""

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

_FORGIVEN = 2  # failures of verbs: one question that goes wrong must not take the skill from everybody
_LONGEST_REASON = 300


class Guard:
    """One skill's: counts what went wrong, and knows whether it is switched off."""

    def __init__(
        self, name: str, failed: Callable[[BaseException], None], tell: Callable[[str, BaseException], None]
    ) -> None:
        self.name = name
        self.off: str | None = None
        """Why it is switched off."""
        self._failed = failed
        self._tell = tell
        self._failures = 0

    def verb(self, handler: "Handler") -> "Handler":
        """The handler of a verb whose failure is the client's answer and not the end of the session."""

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
            answered = answer()
        except (Refused, Failed):
            raise
        except BaseException as error:
            raise self._forgive(message, error) from error
        if not isinstance(answered, Later):
            return answered
        return Later(self._waited(message, answered.work), partial(self._go_on, message, answered.then))

    async def _waited(self, message: Message, work: Awaitable[Any]) -> Any:
        """The result, or what is to be raised in its place when the session goes on."""
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
        """The lines of a long answer; one that fails in the middle ends with a FAIL."""
        try:
            yield from map(wire, rows)
        except BaseException as error:
            yield wire(Message("FAIL", self._forgive(message, error).params, server))

    def _forgive(self, message: Message, error: BaseException) -> Failed:
        """Count a failure of a verb; what the client is told."""
        if is_end(error):
            raise error
        self._failures += 1
        if self._failures > _FORGIVEN:
            self._failed(error)
        else:
            self._tell(f"{message.verb} of the skill {self.name} failed: {reason(error)}", error)
        return Failed(message.verb, "INTERNAL_ERROR", text="This went wrong here; the operators were told")


class _Guarded(Context):
    """The context of a skill's verb: long answers are produced under guard too."""

    __slots__ = ("_guard", "_message")

    def __init__(self, ctx: Context, guard: Guard, message: Message) -> None:
        super().__init__(ctx.parts, ctx.session)
        self._guard = guard
        self._message = message

    def pull(self, rows: Iterable[Message]) -> None:
        """Answer with many lines, produced as the client reads them."""
        self.session.pull(self._guard.rows(self._message, self.router.name, rows))


class _Raised(NamedTuple):
    """In place of a result."""

    error: Exception


def reason(error: BaseException) -> str:
    """What went wrong, on one line that is not too long."""
    text = " ".join("".join(traceback.format_exception_only(error)).split())
    return clip(text, _LONGEST_REASON)
