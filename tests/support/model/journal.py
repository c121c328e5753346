"""What the model was asked, for tests to look at and to wait for."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.waiting import PATIENCE


@dataclass(frozen=True, slots=True)
class Request:
    """One request for an answer."""

    path: str
    body: dict[str, Any]
    prompt: str
    """The last text of the user."""
    results: tuple[str, ...] = ()
    """What the tools called since gave."""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def everything(self) -> str:
        """The whole request as text: what is not in here did not reach the model."""
        return json.dumps(self.body, ensure_ascii=False)


class Journal:
    """The requests so far, oldest first."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.paths: list[str] = []
        """Every path that was asked for, questions that are no requests for an answer among them."""
        self.untold: list[str] = []
        """What answers used that did not stand in their request: only a script of a test knew it."""
        self.verdicts: list[str] = []
        """The scripts that the next questions of supervisors are answered with; then OK."""
        self._arrived = asyncio.Event()

    def write(self, request: Request) -> None:
        """Note a request."""
        self.requests.append(request)
        self._arrived.set()

    def asked(self, text: str) -> list[Request]:
        """The requests whose prompt contains this text."""
        return [request for request in self.requests if text in request.prompt]

    async def arrival(self, text: str, *, results: int = 0) -> Request:
        """Wait for a request whose prompt contains this text, after so many results of tools."""
        return await self.first(lambda request: text in request.prompt and len(request.results) >= results)

    async def first(self, fits: Callable[[Request], bool]) -> Request:
        """Wait for a request that fits."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for request in self.requests:
                    if fits(request):
                        return request
                self._arrived.clear()
                await self._arrived.wait()
