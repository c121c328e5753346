"""The calls of the agent that wait for what comes of a question."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from culture.clients.shared.questions.model import Answer


class Waiting:
    """Who waits for which question."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._calls: dict[int, list[asyncio.Future[Answer]]] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def __contains__(self, number: int) -> bool:
        return number in self._calls

    @contextmanager
    def one(self, number: int) -> Iterator[asyncio.Future[Answer]]:
        """One call that waits, until it has what it waited for or is cut off."""
        call: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        calls = self._calls.setdefault(number, [])
        calls.append(call)
        self._changed()
        try:
            yield call
        finally:
            calls.remove(call)
            if not calls and self._calls.get(number) is calls:
                del self._calls[number]
            self._changed()

    def tell(self, number: int, answer: Answer) -> bool:
        """Give it to all that wait; whether there was one."""
        told = False
        for call in self._calls.pop(number, []):
            if not call.done():
                call.set_result(answer)
                told = True
        return told

    def refuse(self, number: int, why: Exception) -> None:
        """There is no such question after all: nobody will ever answer those who wait."""
        for call in self._calls.pop(number, []):
            if not call.done():
                call.set_exception(why)
                call.exception()  # who has posted it knows without asking
