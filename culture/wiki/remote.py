"""Client of a wiki behind an MCP address."""

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
    """A ``WikiClient`` for a wiki behind an MCP address; opens a new connection for each call."""

    def __init__(self, url: str, patience: float = _PATIENCE) -> None:
        self._url = url
        self._patience = patience

    async def read(self, page: str, revision: str = "") -> WikiPage:
        """Return a page with its present text, or the text that it had at ``revision``.

        ``NoSuchPage`` is raised if the wiki has no such page or the page never had that revision.
        """
        result = await self._call("wiki_read", {"page": page, "revision": revision})
        return WikiPage(**{"text": _text(result, TEXT), **_facts(result)})

    async def write(self, page: str, text: str, base_revision: str, author: str, message: str = "") -> Written:
        """Write a page, unless it was changed since the author read it: then raise ``Conflict``.

        ``text``: the new text of the whole page. ``base_revision``: the revision that the author has read, empty for a
        new page. ``author``: nick of the author. ``message``: message of the git commit.
        """
        arguments = {"page": page, "text": text, "base_revision": base_revision, "message": message}
        return Written(**_facts(await self._call("wiki_write", arguments, author)))

    async def pages(self, under: str = "") -> list[PageEntry]:
        """Return all pages, or those in the folder ``under``: name, revision, size, last author."""
        return [PageEntry(**each) for each in _facts(await self._call("wiki_list", {"folder": under}))["pages"]]

    async def search(self, words: str, limit: int = 20) -> list[PageHit]:
        """Return at most ``limit`` pages that contain all of the words, the best match first.

        ``words``: the words, separated by spaces; compared without case with the name and text of a page.
        """
        hits = _facts(await self._call("wiki_search", {"words": words, "limit": limit}))["hits"]
        return [
            PageHit(each["name"], each["revision"], tuple(PageLine(**line) for line in each["lines"])) for each in hits
        ]

    async def history(self, page: str, limit: int = 20) -> list[PageRevision]:
        """Return at most ``limit`` revisions of a page with author and time, newest first.

        ``NoSuchPage`` is raised if the wiki has no such page.
        """
        changes = _facts(await self._call("wiki_history", {"page": page, "limit": limit}))["changes"]
        return [PageRevision(**each) for each in changes]

    async def _call(self, tool: str, arguments: dict[str, Any], author: str = "") -> CallToolResult:
        try:
            async with asyncio.timeout(self._patience), self._connected(author) as client:
                result = await client.call_tool(tool, arguments)
        except Exception as error:
            # Any error on the way to another program may be temporary.
            raise WikiUnavailable(f"the wiki at {self._safe_url} cannot be reached: {_root_cause(error)}") from error
        if result.is_error:
            raise _error_of(result, arguments.get("text", ""))
        return result

    @asynccontextmanager
    async def _connected(self, author: str) -> AsyncIterator[Client]:
        headers = {HEADER: author} if author else {}
        where = urlsplit(self._url)
        if where.path.endswith("/sse"):
            events = sse_client(self._url, headers=headers, httpx_client_factory=_peer_checked_client)
            async with Client(events, mode="legacy") as client:
                yield client
            return
        is_near = is_loopback(where.hostname or "")
        async with (
            _with_peer_check(
                httpx2.AsyncClient(headers=headers, timeout=self._patience, trust_env=not is_near)
            ) as http,
            Client(streamable_http_client(self._url, http_client=http)) as client,
        ):
            yield client

    @property
    def _safe_url(self) -> str:
        """The wiki's URL without user, password and query, for error messages."""
        where = urlsplit(self._url)
        return f"{where.scheme}://{where.hostname}:{where.port}{where.path}" if where.port else where.hostname or ""


def _peer_checked_client(
    headers: dict[str, Any] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    return _with_peer_check(httpx2.AsyncClient(headers=headers, timeout=timeout or _PATIENCE, auth=auth))


def _with_peer_check(client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """Make an HTTP client check who runs a server to which it connects without TLS; return it.

    If the server is on this machine and runs as another user, the client closes the connection and raises OSError
    before it sends the request.
    """

    async def check(name: str, info: dict[str, Any]) -> None:
        if name == "connection.connect_tcp.complete":
            try:
                check_peer(info["return_value"].get_extra_info("socket"), setting=_SETTING)
            except OSError:
                await info["return_value"].aclose()
                raise

    async def trace(request: httpx2.Request) -> None:
        if request.url.scheme == "http":
            request.extensions["trace"] = check

    client.event_hooks["request"].append(trace)
    return client


def _facts(result: CallToolResult) -> dict[str, Any]:
    facts = (result.meta or {}).get(FACTS)
    if not isinstance(facts, dict):
        raise WikiError(f"that is no wiki of ours, agents alone can use it: {_text(result, 0)[:200]}")
    return facts


def _text(result: CallToolResult, number: int) -> str:
    content = result.content[number] if number < len(result.content) else None
    return content.text if isinstance(content, TextContent) else ""


def _error_of(result: CallToolResult, yours: str) -> WikiError:
    facts = (result.meta or {}).get(FACTS)
    text = _text(result, 0)
    if not isinstance(facts, dict) or facts.get("error") not in ERRORS:
        return WikiError(text or "the wiki refused and did not say why")
    if facts["error"] == "conflict":
        return Conflict(
            facts["page"],
            revision=facts["revision"],
            base=facts.get("base", _text(result, BASE)) if facts["has_base"] else None,
            current=facts.get("current", _text(result, CURRENT)),
            yours=yours,
        )
    return ERRORS[facts["error"]](text)


def _root_cause(error: BaseException) -> str:
    """Return the text of an error; for an exception group, of the first error inside."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
