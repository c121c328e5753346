"""Requests that make no sense, are too large, or whose answers nobody reads."""

import asyncio
import json
import random
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

import httpx2
import pytest

from culture.bridge.access import BridgeAccess
from culture.bridge.callers import CallRate
from culture.bridge.server import AT_ONCE, SESSIONS
from culture.server.ircd import IRCd
from tests.bridge.conftest import Bridge
from tests.bridge.program import Refused, over_http, over_sse
from tests.support.client import registered
from tests.support.waiting import PATIENCE

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call"}
BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"[1]",
    b'"text"',
    b"\xff\xfe\x00",
    b"{}" * 1000,
    b"[" * 5000,
    b'{"jsonrpc": "2.0"}',
    b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": 7}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "no/such/method"}',
    b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rm"}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "send_message", "arguments": []}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "send_message", "arguments": {"a": 1}}}',
    json.dumps([{"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in range(50)]).encode(),
    *(
        json.dumps({**CALL, "params": {"name": "read_messages", "arguments": arguments}}).encode()
        for arguments in (
            {"channel": ["#general"]},
            {"channel": "#general", "since": "x"},
            {"channel": "#general", "limit": 1e99},
            {"channel": "#general", "since": "9999-12-31T23:59:59-23:59"},
            {"channel": "#general", "since": -1e30},
            {"channel": "#\ud800", "sender": "\udfff"},
        )
    ),
]


@pytest.mark.fault("G12")
async def test_nonsense_is_refused_and_everybody_else_is_served(
    ircd: IRCd, bridge: Bridge, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(7)
    whole = json.dumps({**CALL, "params": {"name": "list_channels", "arguments": {}}}).encode()
    broken = [bytes(byte ^ (rng.random() < 0.05) * rng.randrange(256) for byte in whole) for _ in range(40)]
    async with (
        bridge(ircd.port) as port,
        httpx2.AsyncClient(timeout=PATIENCE, base_url=f"http://127.0.0.1:{port}") as http,
    ):
        begun = await http.post("/mcp", json=HELLO, headers=ACCEPT)
        session = {**ACCEPT, "Mcp-Session-Id": begun.headers["mcp-session-id"]}
        for body in (*BODIES, *broken):
            for headers in (session, ACCEPT, {**session, "Content-Type": "text/plain"}):
                answer = await http.post("/mcp", content=body, headers=headers)
                assert answer.status_code in (200, 202, 400, 404, 406, 415), (body, answer.status_code)
                assert "Traceback" not in answer.text
            answer = await http.post("/messages/?session_id=00", content=body, headers=ACCEPT)
            assert answer.status_code in (400, 404)
        for method in ("PUT", "PATCH", "TRACE", "DELETE"):
            assert (await http.request(method, "/mcp", headers=ACCEPT)).status_code in (400, 404, 405)
        async with over_http(port) as program:
            assert await program.call("list_channels") == ["#general"]
    assert [record for record in caplog.records if record.exc_info] == []


@pytest.mark.fault("G12")
async def test_nonsense_in_a_session_does_not_end_it(ircd: IRCd, bridge: Bridge) -> None:
    async with (
        bridge(ircd.port) as port,
        httpx2.AsyncClient(timeout=PATIENCE, base_url=f"http://127.0.0.1:{port}") as http,
        http.stream("GET", "/sse") as stream,
        asyncio.timeout(2 * PATIENCE),
    ):
        lines = stream.aiter_lines()
        place = await _line(lines, "data: /messages/")
        for body in (HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}):
            assert (await http.post(place, json=body, headers=ACCEPT)).status_code == 202
        for body in BODIES:
            answer = await http.post(place, content=body, headers=ACCEPT)
            assert answer.status_code in (202, 400), body
        await http.post(place, json={"jsonrpc": "2.0", "id": 4711, "method": "tools/list"}, headers=ACCEPT)
        assert "send_message" in await _line(lines, "data: ", '"id":4711')


async def _line(lines: AsyncIterator[str], start: str, part: str = "") -> str:
    """What follows ``data: `` in the first line of this kind."""
    async for line in lines:
        if line.startswith(start) and part in line:
            return line.removeprefix("data: ").strip()
    raise AssertionError("the stream ended")


@pytest.mark.fault("G7")
async def test_five_megabytes_are_refused_before_they_are_read(
    ircd: IRCd, bridge: Bridge, access: BridgeAccess
) -> None:
    large = {"name": "send_message", "arguments": {"channel": "#general", "text": "x" * 5_000_000}}
    async with (
        bridge(ircd.port) as port,
        over_http(port) as program,
        httpx2.AsyncClient(timeout=PATIENCE, base_url=f"http://127.0.0.1:{port}") as http,
        registered(ircd.port, "spark-ori") as ori,
    ):
        await ori.join("#general")
        for path in ("/mcp", "/messages/"):
            with suppress(httpx2.WriteError, httpx2.ReadError):
                answer = await http.post(path, json={**CALL, "params": large}, headers=ACCEPT)
                assert answer.status_code == 413
        with pytest.raises(Refused, match="longer than 65536 bytes"):
            await program.call("send_message", channel="#general", text="ä" * 40_000)
        assert [message for message in await ori.sync() if message.verb == "PRIVMSG"] == []


@pytest.mark.fault("G8")
async def test_who_does_not_read_answers_stalls_nobody(ircd: IRCd, bridge: Bridge) -> None:
    async with bridge(ircd.port, CallRate(1000)) as port, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        for number in range(100):
            ori.send(f"PRIVMSG #general :{number} {'x' * 400}")
        await ori.sync()
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=slow, limit=256)
        host = f"Host: 127.0.0.1:{port}\r\n"
        writer.write(f"GET /sse HTTP/1.1\r\n{host}Accept: text/event-stream\r\n\r\n".encode())
        where = ""
        async with asyncio.timeout(PATIENCE):
            while not where.startswith("data: /messages/"):
                where = (await reader.readline()).decode()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        read = {"name": "read_messages", "arguments": {"channel": "#general", "limit": 200}}
        async with httpx2.AsyncClient(timeout=PATIENCE, base_url=f"http://127.0.0.1:{port}") as http:
            place = where.removeprefix("data: ").strip()
            await http.post(place, json=HELLO, headers=ACCEPT)
            await http.post(place, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=ACCEPT)
            for number in range(60):
                call = {**CALL, "id": number + 10, "params": read}
                assert (await http.post(place, json=call, headers=ACCEPT)).status_code == 202
            async with over_sse(port) as other, over_http(port) as third:
                for each in (other, third):
                    async with asyncio.timeout(PATIENCE / 2):
                        found = await each.call("read_messages", channel="#general", limit=1, sender="other")
                    assert found["messages"][0]["text"].startswith("99 ")
        writer.close()


async def test_a_token_that_opens_sessions_without_end_leaves_room_for_others(
    ircd: IRCd, bridge: Bridge, access: BridgeAccess
) -> None:
    _, greedy = access.issue(("spark-greedy",))
    _, other = access.issue(("spark-jules",))
    async with (
        bridge(ircd.port) as port,
        httpx2.AsyncClient(timeout=PATIENCE, base_url=f"http://127.0.0.1:{port}") as http,
    ):
        headers = {**ACCEPT, "Authorization": f"Bearer {greedy}"}
        answers = [await http.post("/mcp", json=HELLO, headers=headers) for _ in range(SESSIONS + 3)]
        assert [answer.status_code for answer in answers] == [200] * SESSIONS + [429] * 3
        within = {**headers, "Mcp-Session-Id": answers[0].headers["mcp-session-id"]}
        assert (await http.post("/mcp", json=CALL, headers=within)).status_code != 429
        async with over_http(port, other) as program:
            assert await program.call("list_channels") == ["#general"]


async def test_a_token_that_holds_many_connections_leaves_room_for_others(
    ircd: IRCd, bridge: Bridge, access: BridgeAccess
) -> None:
    _, greedy = access.issue(("spark-greedy",))
    _, other = access.issue(("spark-jules",))
    headers = {**ACCEPT, "Authorization": f"Bearer {greedy}"}
    url, limits = "http://127.0.0.1:{}", httpx2.Limits(max_connections=None)
    async with bridge(ircd.port) as port, AsyncExitStack() as held:
        http = await held.enter_async_context(
            httpx2.AsyncClient(timeout=PATIENCE, base_url=url.format(port), limits=limits)
        )
        streams = [http.stream("GET", "/sse", headers=headers) for _ in range(AT_ONCE)]
        assert {(await held.enter_async_context(stream)).status_code for stream in streams} == {200}
        assert (await http.get("/sse", headers=headers)).status_code == 429
        async with over_http(port, other) as program:
            assert await program.call("list_channels") == ["#general"]
        await held.aclose()
        async with over_http(port, greedy) as program:
            assert await program.call("list_channels") == ["#general"]
