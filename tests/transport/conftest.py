"""Fixtures of the transport's tests: a server, and somebody on it who is gone with the test."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from culture.server.ircd import IRCd
from culture.transport import Address, ClientIdentity, ConnectionState, IRCTransport, Message, Timing
from tests.support.servers import Serve, serving
from tests.support.waiting import PATIENCE

QUICK = Timing(first_pause=0.05, longest_pause=0.4, regain=0.1)


class Somebody:
    """A transport with a record of everything it told."""

    def __init__(self, port: int, nick: str, channels: Iterable[str] = (), **more: Any) -> None:
        self.heard: list[Message] = []
        self.states: list[tuple[ConnectionState, str]] = []
        self.invited: list[tuple[str, Any]] = []
        self.receipts: list[tuple[str, str]] = []
        self.outside: list[tuple[str, str]] = []
        self._news = asyncio.Event()
        address = more.pop("address", None) or Address("127.0.0.1", port)
        identity = more.pop("identity", None) or ClientIdentity(nick)
        more.setdefault("timing", QUICK)
        self.irc = IRCTransport(
            address,
            identity,
            channels,
            on_message=self._note(self.heard),
            on_state=self._note_two(self.states),
            on_invite=self._note_two(self.invited),
            on_receipt=self._note_two(self.receipts),
            on_outside=self._note_two(self.outside),
            **more,
        )

    def _note(self, into: list[Any]) -> Callable[[Any], None]:
        def note(told: Any) -> None:
            into.append(told)
            self._news.set()

        return note

    def _note_two(self, into: list[Any]) -> Callable[[Any, Any], None]:
        def note(one: Any, other: Any) -> None:
            into.append((one, other))
            self._news.set()

        return note

    @property
    def texts(self) -> list[str]:
        """What was heard."""
        return [message.text for message in self.heard]

    async def until(self, fact: Callable[[], bool]) -> None:
        """Wait until this is so; looked at whenever something is told."""
        async with asyncio.timeout(PATIENCE):
            while not fact():
                self._news.clear()
                await self._news.wait()

    async def hears(self, text: str) -> Message:
        """The first message of this text."""
        await self.until(lambda: text in self.texts)
        return next(message for message in self.heard if message.text == text)

    async def connected(self, times: int = 1) -> None:
        """Wait until it was connected so often."""
        await self.until(lambda: sum(state is ConnectionState.CONNECTED for state, _ in self.states) >= times)


Come = Callable[..., Any]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """``async with serve(limits={...}) as ircd``: a server with these settings."""
    return partial(serving, tmp_path)


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    """A server called spark."""
    async with serving(tmp_path) as running:
        yield running


@pytest.fixture
async def come() -> AsyncIterator[Come]:
    """``ada = await come(port, "ada", ["#general"])``: somebody who is there, and leaves with the test."""
    there: list[Somebody] = []

    async def come(*arguments: Any, wait: bool = True, **more: Any) -> Somebody:
        somebody = Somebody(*arguments, **more)
        there.append(somebody)
        if wait:
            await somebody.irc.start()
        return somebody

    yield come
    for somebody in there:
        await somebody.irc.stop("the test is over")
