"""The way out of a sandbox: listed hosts, no private addresses by a name, never the IRC server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest

from culture.clients.shared.sandbox import gate as gates
from culture.clients.shared.sandbox.gate import ForbiddenPorts, NetworkGate, permitted
from culture.config.sandbox import parse_host
from culture.lib.files import private_directory
from culture.server.ircd import IRCd
from tests.clients.shared.sandbox.conftest import NICK, Jail, needs_bwrap
from tests.support.waiting import PATIENCE


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a gate looks up in ~/.culture is looked up in a folder of the test: the user's home need not be there."""
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path / "culture"))


@asynccontextmanager
async def gate(folder: Path, *hosts: str, server: int = 0) -> AsyncIterator[NetworkGate]:
    """A gate for these hosts."""
    private_directory(folder)
    forbidden = ForbiddenPorts("127.0.0.1", server, frozenset({server} - {0}))
    running = NetworkGate(NICK, folder / "gate.net", [parse_host(each) for each in hosts], forbidden)
    await running.start()
    try:
        yield running
    finally:
        await running.stop()


@pytest.fixture
async def web() -> AsyncIterator[int]:
    """A little web server on loopback that says what it was asked; its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(head)}\r\n\r\n{head}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def asked(running: NetworkGate, request: str) -> str:
    """What comes back when a program asks the gate."""
    reader, writer = await asyncio.open_unix_connection(str(running.path))
    async with asyncio.timeout(PATIENCE):
        writer.write(request.encode())
        answer = await reader.read()
    writer.close()
    return answer.decode()


@pytest.mark.parametrize(
    ("hosts", "address", "reached"),
    [
        (["api.example.com"], "93.184.216.34", True),
        (["api.example.com"], "10.0.0.1", False),
        (["api.example.com"], "127.0.0.1", False),
        (["api.example.com"], "169.254.169.254", False),
        (["api.example.com"], "::1", False),
        (["api.example.com"], "::ffff:10.0.0.1", False),
        (["api.example.com"], "64:ff9b::a00:1", False),
        (["api.example.com:443"], "10.0.0.1", True),
        (["api.example.com:443"], "::ffff:10.0.0.1", True),
        (["api.example.com:443"], "fd00::1", True),
        (["api.example.com:443"], "127.0.0.1", False),
        (["api.example.com:443"], "::ffff:127.0.0.1", False),
        (["api.example.com:443"], "169.254.169.254", False),
        (["api.example.com:443"], "0.0.0.0", False),
        (["localhost:443"], "127.0.0.1", True),
        (["localhost:443"], "10.0.0.1", False),
        (["10.0.0.1:443"], "10.0.0.1", True),
    ],
)
def test_address_of_a_listed_host(hosts: list[str], address: str, reached: bool) -> None:
    assert permitted(ip_address(address), [parse_host(each) for each in hosts]) is reached


@pytest.mark.parametrize(
    ("entry", "host", "port", "matches"),
    [
        ("example.com", "example.com", 443, True),
        ("example.com", "EXAMPLE.com.", 443, True),
        ("example.com", "example.com", 80, False),
        ("example.com", "evil-example.com", 443, False),
        ("example.com", "www.example.com", 443, False),
        ("*.example.com", "www.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "evilexample.com", 443, False),
        ("*.example.com", "evil.org\0.example.com", 443, False),
        ("*.example.com", "127.0.0.1%.example.com", 443, False),
        ("*.example.com", "..example.com", 443, False),
        ("example.com:8443", "example.com", 8443, True),
        ("[::1]:80", "::1", 80, True),
    ],
)
def test_entry_names_a_host_and_a_port(entry: str, host: str, port: int, matches: bool) -> None:
    assert parse_host(entry).matches(host, port) is matches


@pytest.mark.parametrize(
    "entry", ["", "*", "*.", "http://x", "x:0", "x:70000", "127.0.0.1", "localhost", "a b", "[::1"]
)
def test_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r"is not a host|needs a port"):
        parse_host(entry)


async def test_listed_host_is_reached_and_every_other_refused(tmp_path: Path, web: int) -> None:
    async with gate(tmp_path / "run", f"127.0.0.1:{web}") as running:
        tunnel = f"CONNECT 127.0.0.1:{web} HTTP/1.1\r\n\r\n"
        answer = await asked(running, f"{tunnel}GET /through HTTP/1.1\r\n\r\n")
        assert answer.startswith("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
        assert answer.endswith("GET /through HTTP/1.1\r\n\r\n")
        plain = f"GET http://127.0.0.1:{web}/p?q HTTP/1.1\r\nHost: other\r\nProxy-Authorization: x\r\nA: b\r\n\r\n"
        answer = await asked(running, plain)
        sent = answer.partition("\r\n\r\n")[2].splitlines()
        assert sent == ["GET /p?q HTTP/1.1", f"Host: 127.0.0.1:{web}", "A: b", "Connection: close", ""]
        for place in (
            f"localhost:{web}",
            f"127.1:{web}",
            f"[::ffff:127.0.0.1]:{web}",
            "example.com:443",
            "127.0.0.1:1",
        ):
            answer = await asked(running, f"CONNECT {place} HTTP/1.1\r\n\r\n")
            assert answer.startswith("HTTP/1.1 403 ")
            assert f"sandbox.hosts of {NICK}" in answer
        assert (await asked(running, "GET / HTTP/1.1\r\n\r\n")).startswith("HTTP/1.1 400 ")
        assert (await asked(running, f"GET /{'x' * 70_000} HTTP/1.1\r\n\r\n")).startswith("HTTP/1.1 431 ")


async def test_server_is_not_reached_even_where_it_is_listed(tmp_path: Path, ircd: IRCd) -> None:
    async with gate(tmp_path / "run", f"127.0.0.1:{ircd.port}", f"localhost:{ircd.port}", server=ircd.port) as running:
        for host in ("127.0.0.1", "localhost"):
            answer = await asked(running, f"CONNECT {host}:{ircd.port} HTTP/1.1\r\n\r\n")
            assert answer.startswith("HTTP/1.1 403 ")
            assert "the IRC server" in answer


def test_a_public_address_of_this_machine_leads_to_no_server_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with such an address reaches its own listeners by it."""
    monkeypatch.setattr(gates, "is_public", lambda ip: True)
    forbidden = ForbiddenPorts("chat.example.org", 6697, frozenset({6667}))
    own, other = ip_address("127.0.0.1"), ip_address("203.0.113.7")
    assert forbidden.includes(own, 6667) and forbidden.includes(own, 6697)
    assert not forbidden.includes(own, 443) and not forbidden.includes(other, 6667)


async def test_name_that_points_at_this_machine_is_refused(
    tmp_path: Path, web: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr(gates, "_resolved", resolve)
    async with gate(tmp_path / "run", f"api.example.com:{web}") as running:
        answer = await asked(running, f"CONNECT api.example.com:{web} HTTP/1.1\r\n\r\n")
    assert answer.startswith("HTTP/1.1 403 ")
    assert "an address of this machine" in answer


@needs_bwrap
async def test_program_inside_reaches_listed_hosts_by_the_proxy_and_opened_ports_at_their_place(
    jail: Jail, tmp_path: Path, web: int, ircd: IRCd
) -> None:
    hosts = [f"127.0.0.1:{web}", f"127.0.0.1:{ircd.port}"]
    async with gate(tmp_path / "run", *hosts, server=ircd.port) as running:
        inmate = await jail(gate=running.path, hosts=hosts)
        fetch = "import sys,urllib.request as u; print(u.urlopen(sys.argv[1], timeout=10).read().decode())"
        python = f'python3 -c "{fetch}" http://127.0.0.1:{web}/x 2>&1'
        # By the port that the owner opened, and by the proxy.
        assert (await inmate.shell(python)).startswith("GET /x HTTP/1.1")
        assert (await inmate.shell(f"NO_PROXY= no_proxy= {python}")).startswith("GET /x HTTP/1.1")
        assert "403" in await inmate.shell(f"NO_PROXY= no_proxy= {python.replace(str(web), '9')}")
        connect = f"import socket; print(socket.create_connection(('127.0.0.1', {ircd.port}), 5).recv(100))"
        assert await inmate.shell(f'python3 -c "{connect}" 2>&1') == "b''"
        direct = "import socket; socket.create_connection(('93.184.216.34', 443), 5)"
        assert "Network is unreachable" in await inmate.shell(f'python3 -c "{direct}" 2>&1')


@needs_bwrap
async def test_without_network_there_is_no_proxy(jail: Jail, ircd: IRCd) -> None:
    inmate = await jail(network="off")
    assert await inmate.shell("env | grep -i ^http.*proxy; echo end") == "end"
    connect = f"import socket; socket.create_connection(('127.0.0.1', {ircd.port}), 5)"
    assert "refused" in await inmate.shell(f'python3 -c "{connect}" 2>&1')
