"""Fixtures of the server's tests."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.support.client import Client, connected, registered
from tests.support.servers import Serve, serving

Join = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """``async with serve(limits={...}) as ircd``: a server with these settings."""
    return partial(serving, tmp_path)


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    """A server called spark with default settings."""
    async with serving(tmp_path) as running:
        yield running


class Crowd:
    """Clients of one server that are closed with the test."""

    def __init__(self, ircd: IRCd, stack: AsyncExitStack) -> None:
        self._ircd = ircd
        self._stack = stack

    async def connect(self) -> Client:
        """A connection that has said nothing."""
        return await self._stack.enter_async_context(connected(self._ircd.port))

    async def join(self, nick: str, *channels: str, caps: str = "") -> Client:
        """A registered client in these channels."""
        client = await self._stack.enter_async_context(registered(self._ircd.port, nick, caps))
        for channel in channels:
            await client.join(channel)
        return client


@pytest.fixture
async def crowd(ircd: IRCd) -> AsyncIterator[Crowd]:
    """Makes clients of the ``ircd`` fixture: ``ori = await crowd.join("spark-ori", "#general")``."""
    async with AsyncExitStack() as stack:
        yield Crowd(ircd, stack)
