"""An agent that says of itself whatever a test wants it to."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from culture.protocol.message import Message
from culture.protocol.vocabulary import ClientTag, ExtensionVerb
from tests.support.client import Client, connected
from tests.support.people import PASSWORD, authenticate, come_in, plain

IMP = "spark-imp"


@asynccontextmanager
async def imp(port: int) -> AsyncIterator[Client]:
    """The agent, which no daemon looks after."""
    async with connected(port) as client:
        await authenticate(client, "PLAIN", plain("imp", PASSWORD))
        client.send("CAP REQ :message-tags")
        await come_in(client, IMP)
        yield client


@asynccontextmanager
async def person(port: int, account: str) -> AsyncIterator[Client]:
    """A person with a client of their own, logged in: the first in a configured room is its operator."""
    async with connected(port) as client:
        await authenticate(client, "PLAIN", plain(account, PASSWORD))
        await come_in(client, f"spark-{account}")
        yield client


async def tell(client: Client, kind: str, key: str, value: Mapping[str, Any]) -> None:
    """A fact for the ledger."""
    client.send(str(Message(ExtensionVerb.LEDGER, ("PUT", kind, key), tags={ClientTag.FACT.value: json.dumps(value)})))
    await client.expect("LEDGEREND", kind, key)
