"""Servers for tests: real ones, on free ports of loopback."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from culture.config.model import Flood, Listen, Rate, ServerConfig, ServerLimits
from culture.config.skills import Embeddings, HistoryConfig
from culture.server.auth.authenticator import Authenticator
from culture.server.ircd import IRCd

UNLIMITED = Flood(loopback=Rate(rate=0.0))
WITHOUT_MODEL = HistoryConfig(semantic=Embeddings(enabled=False))
"""Loading a model takes longer than most tests."""


def config_for(folder: Path, **settings: Any) -> ServerConfig:
    """The configuration of a server called spark whose data is in this folder."""
    limits = ServerLimits(**settings.pop("limits", {}))
    said: dict[str, Any] = {
        "name": "spark",
        "listen": (Listen(port=0),),
        "data_dir": folder / "data",
        "accounts_file": folder / "accounts.json",
        "limits": limits,
        "flood": UNLIMITED,
        "history": WITHOUT_MODEL,
    }
    return ServerConfig(**{**said, **settings})


@asynccontextmanager
async def serving(folder: Path, authenticator: Authenticator | None = None, **settings: Any) -> AsyncIterator[IRCd]:
    """A running server."""
    async with IRCd(config_for(folder, **settings), authenticator=authenticator).running() as ircd:
        yield ircd


Serve = Callable[..., AbstractAsyncContextManager[IRCd]]
