"""A program that uses a bridge, with the official client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from tests.support.waiting import PATIENCE


class Refused(Exception):
    """The bridge did not do it; the text is what the model is told."""


class Program:
    """Calls tools."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> Any:
        """What the tool answers, or ``Refused``."""
        async with asyncio.timeout(PATIENCE):
            answer = await self.client.call_tool(tool, arguments)
        if answer.is_error:
            raise Refused(answer.content[0].text)
        found = answer.structured_content
        return found.get("result", found)


def _headers(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def over_http(port: int, token: str | None = None, scheme: str = "http") -> AsyncIterator[Program]:
    """By Streamable HTTP."""
    async with httpx2.AsyncClient(timeout=PATIENCE, headers=_headers(token)) as http:
        transport = streamable_http_client(f"{scheme}://127.0.0.1:{port}/mcp", http_client=http)
        async with Client(transport) as client:
            yield Program(client)


@asynccontextmanager
async def over_sse(port: int, token: str | None = None) -> AsyncIterator[Program]:
    """By HTTP+SSE, the older way."""
    async with Client(sse_client(f"http://127.0.0.1:{port}/sse", headers=_headers(token))) as client:
        yield Program(client)
