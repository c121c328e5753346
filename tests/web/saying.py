"""Agents that say facts of themselves, whatever a test likes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from culture.protocol.vocabulary import ClientTag, ExtensionVerb
from culture.server.ircd import IRCd
from culture.transport import Address, ClientIdentity, IRCTransport
from tests.support.clock import sleep
from tests.support.people import PASSWORD
from tests.support.waiting import PATIENCE
from tests.support.web import Browser

AGENT = "spark-claude"


@asynccontextmanager
async def agent(ircd: IRCd) -> AsyncIterator[IRCTransport]:
    """The agent that has an account."""
    transport = IRCTransport(Address("127.0.0.1", ircd.port), ClientIdentity(AGENT, "claude", PASSWORD))
    await transport.start()
    try:
        yield transport
    finally:
        await transport.stop()


async def put(transport: IRCTransport, kind: str, key: str, value: dict[str, Any]) -> None:
    """Say a fact."""
    lines = await transport.request(
        ExtensionVerb.LEDGER, "PUT", kind, key, tags={ClientTag.FACT.value: json.dumps(value)}
    )
    assert [line.verb for line in lines] == [ExtensionVerb.LEDGEREND.value], lines


async def shows(browser: Browser, path: str, *words: str) -> str:
    """Wait until a page has all these words; the page."""
    page = ""
    try:
        async with asyncio.timeout(PATIENCE):
            while not all(word in page for word in words) or not page:
                page = (await browser.get(path)).text
                await sleep(0.05)
    except TimeoutError:
        raise AssertionError([word for word in words if word not in page]) from None
    return page
