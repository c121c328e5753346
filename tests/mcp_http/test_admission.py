"""Who is let through to MCP tools of ours; what a bridge and a wiki make of it is tested there."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import pytest

from tests.support.waiting import PATIENCE

pytest.importorskip("mcp", reason="the extra culture[bridge] is not installed")

import httpx2
from mcp.server.mcpserver import MCPServer

from culture.mcp_http import admission
from culture.mcp_http import http as door_http
from culture.mcp_http.admission import ANY_NAME, AdmissionCheck, own_names
from culture.mcp_http.http import listening, serving
from culture.mcp_http.server import pages
from tests.support.clock import sleep

LONGEST = 1024
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}
LET_THROUGH = 400
"""It is told that it has no session."""

Behind = Callable[..., AbstractAsyncContextManager[httpx2.AsyncClient]]


@pytest.fixture
def behind() -> Behind:
    """``async with behind(names) as http``: a shop behind a door, and somebody in front of it."""

    @asynccontextmanager
    async def opened(names: frozenset[str] = ANY_NAME, **more: Any) -> AsyncIterator[httpx2.AsyncClient]:
        server: MCPServer[Any] = MCPServer("shop", log_level="WARNING")
        door = AdmissionCheck(pages(server, LONGEST), "shop", names, **more)
        with listening("127.0.0.1", 0) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            async with (
                serving(door, listener),
                httpx2.AsyncClient(timeout=PATIENCE, base_url=url, trust_env=False) as http,
            ):
                yield http

    return opened


async def asked(http: httpx2.AsyncClient, **headers: str) -> tuple[int, str]:
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = await http.post("/mcp", json=CALL, headers={**ACCEPT, **said})
    return answer.status_code, answer.text


async def test_it_is_called_by_its_names_alone(behind: Behind) -> None:
    async with behind(own_names("Shop.lan")) as http:
        assert await asked(http, Host="evil.example") == (421, "this is not the name of the shop")
        for host in ("shop.lan", "SHOP.LAN:80", "localhost:1", "[::1]"):
            assert (await asked(http, Host=host))[0] == LET_THROUGH
        assert (await asked(http, Host="shop.lan", Origin="https://shop.lan"))[0] == LET_THROUGH


async def test_where_any_name_will_do_a_page_has_to_say_localhost(behind: Behind) -> None:
    async with behind() as http:
        assert (await asked(http, Host="shop.lan"))[0] == LET_THROUGH
        rebound = await asked(http, Host="evil.example", Origin="http://evil.example")
        assert rebound == (403, "no page calls the shop by another name than localhost")
        assert (await asked(http, Host="localhost:80", Origin="http://localhost:80"))[0] == LET_THROUGH


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "ftp://localhost"},
        {"Origin": "localhost"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
    ],
    ids=["elsewhere", "scheme", "no-scheme", "without-origin"],
)
async def test_a_page_elsewhere_is_refused(behind: Behind, headers: dict[str, str]) -> None:
    async with behind(own_names()) as http:
        assert await asked(http, Host="localhost", **headers) == (403, "pages of others may not call the shop")


async def test_behind_a_proxy_its_own_pages_are_those_of_its_address(behind: Behind) -> None:
    """Many a proxy says its own idea of Host."""
    async with behind(own_names("shop.example.org"), origin="https://shop.example.org") as http:
        assert (await asked(http, Origin="https://shop.example.org"))[0] == LET_THROUGH
        for origin in ("https://evil.example.org", "http://shop.example.org", "null", ""):
            assert (await asked(http, Origin=origin))[0] == 403


async def test_whoever_is_not_its_user_is_told_so(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    async with behind(own_names(), strangers="not you") as http:
        assert (await asked(http))[0] == LET_THROUGH
        monkeypatch.setattr(admission, "uid_of", lambda client, server: os.getuid() + 4711)
        assert await asked(http) == (403, "not you")


async def test_the_way_can_be_barred_while_it_runs(behind: Behind) -> None:
    why: list[str] = []
    async with behind(own_names(), refuse_all=lambda: why[0] if why else None) as http:
        assert (await asked(http))[0] == LET_THROUGH
        why.append("log in")
        assert await asked(http) == (401, "log in")


async def test_no_request_is_longer_than_it_may_be(behind: Behind) -> None:
    async with behind(own_names()) as http:
        for path in ("/mcp", "/messages/", "/nothing"):
            assert (await http.post(path, content=b"x" * (LONGEST + 1))).status_code == 413


HALF = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    "said", [b"", HALF, HALF + b"Content-Length: 9\r\n\r\n{"], ids=["nothing", "half a head", "half a body"]
)
async def test_whoever_does_not_finish_their_request_is_let_go(
    behind: Behind, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    """Else a few hundred of them keep everybody else out."""
    monkeypatch.setattr(door_http, "PATIENCE", 0.05)
    async with behind() as http, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", http.base_url.port)
        writer.write(said)
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()


async def test_whoever_waits_for_what_comes_is_not_let_go(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_http, "PATIENCE", 0.05)
    async with behind() as http, http.stream("GET", "/sse") as waiting:
        await sleep(0.3)
        lines = waiting.aiter_lines()
        assert await anext(lines) == "event: endpoint"
        place = (await anext(lines)).removeprefix("data: ")
        assert (await http.post(place, json=CALL, headers=ACCEPT)).status_code == 202


@pytest.mark.parametrize("own", [True, False], ids=["own user", "another user"])
async def test_crowd_of_unfinished_requests_keeps_the_owner_in(
    behind: Behind, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    """Each has sent half a request and is waited for; the oldest end, those of other users first."""
    crowd: set[int] = set()
    monkeypatch.setattr(door_http, "_CONNECTIONS", 8)
    monkeypatch.setattr(door_http, "_RESERVED", 2)
    monkeypatch.setattr(door_http, "is_own", lambda client, server: own or client[1] not in crowd)
    async with behind() as http, asyncio.timeout(PATIENCE):
        writers = []
        for _ in range(12):
            reader, writer = await asyncio.open_connection("127.0.0.1", http.base_url.port)
            crowd.add(writer.get_extra_info("sockname")[1])
            writers.append(writer)
            writer.write(HALF + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 100 ")
        for _ in range(3):
            assert (await asked(http))[0] == LET_THROUGH
        for writer in writers:
            writer.close()


async def test_idle_connections_keep_nobody_out(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are as many as may be, the oldest of those who ask for nothing go; who waits for an answer stays."""
    monkeypatch.setattr(door_http, "_CONNECTIONS", 8)
    async with behind() as http, http.stream("GET", "/sse") as waiting:
        lines = waiting.aiter_lines()
        assert await anext(lines) == "event: endpoint"
        place = (await anext(lines)).removeprefix("data: ")
        idle = [await asyncio.open_connection("127.0.0.1", http.base_url.port) for _ in range(20)]
        assert (await asked(http))[0] == LET_THROUGH
        assert (await http.post(place, json=CALL, headers=ACCEPT)).status_code == 202
        for _, writer in idle:
            writer.close()
