"""A server that trusts an issuer; both live by one clock."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from culture.config.oidc import Oidc
from culture.server.ircd import IRCd
from tests.support.clock import Clock, ClockedRuntime
from tests.support.issuer import Issuer
from tests.support.servers import config_for

Trust = Callable[..., AbstractAsyncContextManager[IRCd]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def issuer(clock: Clock) -> Iterator[Issuer]:
    with Issuer(clock.now) as running:
        yield running


@pytest.fixture
def trusting(tmp_path: Path, clock: Clock, issuer: Issuer) -> Trust:
    """``async with trusting({"account_claim": …}, limits={…}) as ircd``: a server with this block about the issuer."""

    @asynccontextmanager
    async def serve(said: dict[str, Any] | None = None, **settings: Any) -> AsyncIterator[IRCd]:
        oidc = Oidc.model_validate(issuer.settings(**(said or {})))
        settings = {"limits": {"failed_logins": 100}, **settings}
        async with IRCd(config_for(tmp_path, oidc=oidc, **settings), runtime=ClockedRuntime(clock)).running() as ircd:
            yield ircd

    return serve
