"""What an agent asks leave for while its turn lasts: nobody needs to answer for a turn that is over."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from culture.clients.shared.turn import Permit

Ask = Callable[[str, Mapping[str, object]], Awaitable[Permit]]


class OpenQuestions:
    """The questions of one agent that wait for people."""

    def __init__(self) -> None:
        self._open: dict[asyncio.Future[Permit], None] = {}

    async def put(self, ask: Ask, tool: str, given: Mapping[str, object]) -> Permit | None:
        """Ask and wait; None when nobody needs the answer any more."""
        question = asyncio.ensure_future(ask(tool, given))
        self._open[question] = None
        try:
            await asyncio.wait([question])
        finally:
            self._open.pop(question, None)
            question.cancel()
        return None if question.cancelled() else question.result()

    def forget(self) -> None:
        """The turn is over."""
        for question in self._open:
            question.cancel()
