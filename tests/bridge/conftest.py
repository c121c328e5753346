"""A server, a bridge beside it, and programs that use the bridge with the official client."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra culture[bridge] is not installed")

from culture.bridge.access import BridgeAccess
from culture.bridge.callers import CallRate
from culture.bridge.server import serving as bridging
from culture.bridge.settings import from_environment
from culture.server.ircd import IRCd
from tests.bridge.program import Program, over_http
from tests.support.clock import Clock
from tests.support.servers import serving

Bridge = Callable[..., AbstractAsyncContextManager[int]]


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    """A server called spark."""
    async with serving(tmp_path / "server") as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    """The time by which tokens expire."""
    return Clock()


@pytest.fixture
def access(tmp_path: Path) -> BridgeAccess:
    """Who may use the bridge; without a token nobody needs one."""
    return BridgeAccess(tmp_path / "bridge" / "access.json")


@pytest.fixture
def secrets() -> dict[str, str]:
    """The tokens with which nicks log in to the server."""
    return {}


@pytest.fixture
def bridge(access: BridgeAccess, secrets: dict[str, str]) -> Bridge:
    """``async with bridge(ircd.port) as port``: a bridge to that server; more are variables of its environment."""

    @asynccontextmanager
    async def running(irc_port: int, pace: CallRate | None = None, **variables: str) -> AsyncIterator[int]:
        said = {"IRC_SERVER": "127.0.0.1", "IRC_PORT": str(irc_port), "MCP_PORT": "0", **variables}
        async with bridging(from_environment(said), access, secrets.get, pace) as port:
            yield port

    return running


@pytest.fixture
async def program(ircd: IRCd, bridge: Bridge) -> AsyncIterator[Program]:
    """A program beside a bridge without tokens."""
    over = asyncio.Event()
    there: asyncio.Future[Program] = asyncio.get_running_loop().create_future()

    async def live() -> None:
        """In a task of its own: the client must be left in the task that entered it."""
        async with bridge(ircd.port) as port, over_http(port) as program:
            there.set_result(program)
            await over.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(live())
        yield await there
        over.set()
