"""A wiki behind an MCP address, as programs of ours use it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from culture.config.listen_policy import is_loopback
from culture.config.peer_uid import check_peer
from culture.wiki.errors import Conflict, WikiError, WikiUnavailable
from culture.wiki.identity import HEADER
from culture.wiki.tools import BASE, CURRENT, ERRORS, FACTS, TEXT
from culture.wiki.types import PageEntry, PageHit, PageLine, PageRevision, WikiPage, Written

_PATIENCE = 30.0
_SETTING = "serve the wiki as the user who uses it"


class RemoteWiki:
    """Each call is a connection of its own: there is none to be kept alive, or to be found dead."""

    def __init__(self, url: str, patience: float = _PATIENCE) -> None:
        self._url = url
        self._patience = patience

    async def read(self, page: str, revision: str = "") -> WikiPage:
        """The page as it is, or as it was at that revision."""
        result = await self._call("wiki_read", {"page": page, "revision": revision})
        return WikiPage(**{"text": _text(result, TEXT), **_facts(result)})

    async def write(self, page: str, text: str, base_revision: str, author: str, message: str = "") -> Written:
        """Write on top of a revision, or raise Conflict."""
        said = {"page": page, "text": text, "base_revision": base_revision, "message": message}
        return Written(**_facts(await self._call("wiki_write", said, author)))

    async def pages(self, under: str = "") -> list[PageEntry]:
        """The pages, or those in a folder."""
        return [PageEntry(**each) for each in _facts(await self._call("wiki_list", {"folder": under}))["pages"]]

    async def search(self, words: str, limit: int = 20) -> list[PageHit]:
        """The pages with all these words."""
        found = _facts(await self._call("wiki_search", {"words": words, "limit": limit}))["hits"]
        return [
            PageHit(each["name"], each["revision"], tuple(PageLine(**line) for line in each["lines"])) for each in found
        ]

    async def history(self, page: str, limit: int = 20) -> list[PageRevision]:
        """Who wrote it when."""
        found = _facts(await self._call("wiki_history", {"page": page, "limit": limit}))["changes"]
        return [PageRevision(**each) for each in found]

    async def _call(self, tool: str, arguments: dict[str, Any], author: str = "") -> CallToolResult:
        try:
            async with asyncio.timeout(self._patience), self._connected(author) as client:
                result = await client.call_tool(tool, arguments)
        except Exception as error:
            # Whatever happens on the way to another program: it may be better later.
            raise WikiUnavailable(f"the wiki at {self._shown} cannot be reached: {_first(error)}") from error
        if result.is_error:
            raise _told(result, arguments.get("text", ""))
        return result

    @asynccontextmanager
    async def _connected(self, author: str) -> AsyncIterator[Client]:
        headers = {HEADER: author} if author else {}
        where = urlsplit(self._url)
        if where.path.endswith("/sse"):
            events = sse_client(self._url, headers=headers, httpx_client_factory=_checked_client)
            async with Client(events, mode="legacy") as client:
                yield client
            return
        is_near = is_loopback(where.hostname or "")
        async with (
            _checked(httpx2.AsyncClient(headers=headers, timeout=self._patience, trust_env=not is_near)) as http,
            Client(streamable_http_client(self._url, http_client=http)) as client,
        ):
            yield client

    @property
    def _shown(self) -> str:
        """Where it is, without what may be a secret."""
        where = urlsplit(self._url)
        return f"{where.scheme}://{where.hostname}:{where.port}{where.path}" if where.port else where.hostname or ""


def _checked_client(
    headers: dict[str, Any] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    return _checked(httpx2.AsyncClient(headers=headers, timeout=timeout or _PATIENCE, auth=auth))


def _checked(client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """Have the client look whose process listens on this machine, before it sends a request without TLS there."""

    async def look(name: str, info: dict[str, Any]) -> None:
        if name == "connection.connect_tcp.complete":
            try:
                check_peer(info["return_value"].get_extra_info("socket"), setting=_SETTING)
            except OSError:
                await info["return_value"].aclose()
                raise

    async def trace(request: httpx2.Request) -> None:
        if request.url.scheme == "http":
            request.extensions["trace"] = look

    client.event_hooks["request"].append(trace)
    return client


def _facts(result: CallToolResult) -> dict[str, Any]:
    facts = (result.meta or {}).get(FACTS)
    if not isinstance(facts, dict):
        raise WikiError(f"that is no wiki of ours, agents alone can use it: {_text(result, 0)[:200]}")
    return facts


def _text(result: CallToolResult, number: int) -> str:
    found = result.content[number] if number < len(result.content) else None
    return found.text if isinstance(found, TextContent) else ""


def _told(result: CallToolResult, yours: str) -> WikiError:
    facts = (result.meta or {}).get(FACTS)
    said = _text(result, 0)
    if not isinstance(facts, dict) or facts.get("error") not in ERRORS:
        return WikiError(said or "the wiki refused and did not say why")
    if facts["error"] == "conflict":
        return Conflict(
            facts["page"],
            revision=facts["revision"],
            base=facts.get("base", _text(result, BASE)) if facts["has_base"] else None,
            current=facts.get("current", _text(result, CURRENT)),
            yours=yours,
        )
    return ERRORS[facts["error"]](said)


def _first(error: BaseException) -> str:
    """What really happened, out of the groups in which it comes."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
