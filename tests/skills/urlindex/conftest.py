"""Fixtures of the link index's tests."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from culture.server.ircd import IRCd
from tests.support.clock import Clock, ClockedRuntime
from tests.support.servers import config_for

CAPS = "message-tags echo-message draft/message-redaction draft/channel-rename batch draft/multiline"
Indexing = Callable[..., AbstractAsyncContextManager[IRCd]]


@asynccontextmanager
async def running(folder: Path, clock: Clock, **settings: Any) -> AsyncIterator[IRCd]:
    """A server called spark with the link index as its only skill."""
    others = {"history": {"enabled": False}, "logger": {"enabled": False}}
    async with IRCd(config_for(folder, **{**others, **settings}), runtime=ClockedRuntime(clock)).running() as ircd:
        yield ircd


@pytest.fixture
def clock() -> Clock:
    """The time of the server."""
    return Clock()


@pytest.fixture
def indexing(tmp_path: Path, clock: Clock) -> Indexing:
    """``async with indexing(urlindex={"keep": 5}) as ircd``: a server with these settings."""
    return partial(running, tmp_path, clock)
