"""The calls of the agent that wait for what comes of a question."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from culture.clients.shared.questions.model import Answer

Call = asyncio.Future[Answer]


@dataclass(slots=True)
class _Calls:
    """Those that wait for the same."""

    open: list[Call] = field(default_factory=list)
    heard: bool = False
    """Whether one of them has passed on what it was told."""


class Waiting:
    """Who waits for which question; ``unheard`` is given what was told to calls that were cut off at that moment."""

    def __init__(self, changed: Callable[[], None], unheard: Callable[[Answer], None]) -> None:
        self._changed = changed
        self._unheard = unheard
        self._calls: dict[int, _Calls] = {}
        self._in_turn: dict[Call, int] = {}  # calls that end with the turn, and the number of their question

    def __len__(self) -> int:
        return len(self._calls)

    def __contains__(self, number: int) -> bool:
        return number in self._calls

    @contextmanager
    def one(self, number: int, *, in_turn: bool = False) -> Iterator[Call]:
        """One call that waits, until it has what it waited for or is cut off; ``in_turn`` it ends with the turn."""
        call: Call = asyncio.get_running_loop().create_future()
        calls = self._calls.setdefault(number, _Calls())
        calls.open.append(call)
        if in_turn:
            self._in_turn[call] = number
        self._changed()
        try:
            yield call
            calls.heard = calls.heard or _is_told(call)
        finally:
            calls.open.remove(call)
            self._in_turn.pop(call, None)
            if not calls.open and self._calls.get(number) is calls:
                del self._calls[number]
            if _is_told(call) and not calls.heard and not any(map(_is_told, calls.open)):
                self._unheard(call.result())
            self._changed()

    def is_open(self, number: int) -> bool:
        """Whether somebody waits who would hear what is told."""
        return number in self._calls and not all(call.done() for call in self._calls[number].open)

    def tell(self, number: int, answer: Answer) -> bool:
        """Give it to all that wait; whether there was one."""
        waiting = [call for call in self._taken(number) if not call.done()]
        for call in waiting:
            call.set_result(answer)
        return bool(waiting)

    def leave_turn(self, told: Callable[[int], Answer]) -> None:
        """The turn is over: its calls that have no answer are told this, and wait no longer."""
        for call, number in self._in_turn.items():
            if not call.done():
                call.set_result(told(number))

    def refuse(self, number: int, why: Exception) -> None:
        """There is no such question after all: nobody will ever answer those who wait."""
        for call in self._taken(number):
            if not call.done():
                call.set_exception(why)
                call.exception()  # who has posted it knows without asking

    def _taken(self, number: int) -> list[Call]:
        calls = self._calls.pop(number, None)
        return [] if calls is None else calls.open


def _is_told(call: Call) -> bool:
    return call.done() and not call.cancelled() and call.exception() is None
