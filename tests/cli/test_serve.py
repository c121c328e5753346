"""A server in the foreground, and the signals it heeds."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from culture.protocol.message import Message
from tests.cli.shell import Shell
from tests.federation.raw import SECRET, RawPeer
from tests.support.client import Client, connected, registered
from tests.support.waiting import PATIENCE

ASKED = 200
LINES = 200
# 16 MB of answers, more than the kernel keeps for a connection.
LONG_ANSWERS = f"""
name: spark
motd: |
  {(" word" * 80 + chr(10) + "  ") * LINES}
limits: {{{{send_queue: 40000000, pull_queue: 40000000, shutdown_timeout: {{patience}}}}}}
"""


@pytest.mark.fault("B21")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_stop_tells_the_clients_and_ends_in_time(shell: Shell, number: signal.Signals) -> None:
    """B21"""
    server, port = await shell.serve("--name", "spark")
    async with registered(port, "spark-ori") as ori, registered(port, "spark-kim") as kim, connected(port) as silent:
        await asyncio.gather(ori.join("#general"), kim.join("#general"))
        server.signal(number)
        for client in (ori, kim, silent):
            last = (await client.ended())[-1]
            assert last.verb == "ERROR" and "Server shutting down" in last.params[-1]
    async with asyncio.timeout(30):
        assert await server.ended() == 0
    assert not shell.pid_file().exists()


@pytest.mark.fault("B21")
async def test_a_stop_writes_what_is_queued_first(shell: Shell) -> None:
    """B21: a client that reads late still gets every answer, then the goodbye."""
    shell.write(LONG_ANSWERS.format(patience="10s"))
    server, port = await shell.serve()
    async with slow_reader(port) as late, registered(port, "spark-kim") as kim:
        await ask_for_much(late, kim)
        server.signal(signal.SIGTERM)
        await kim.ended()
        got = await late.ended()
    assert [message.params[-1] for message in got if message.verb == "PONG"] == [f"end{n}" for n in range(ASKED)]
    assert sum(message.verb == "372" for message in got) == (1 + ASKED) * LINES, "once at the welcome too"
    assert got[-1].verb == "ERROR"
    assert await server.ended() == 0


@pytest.mark.fault("B21")
async def test_a_client_that_never_reads_does_not_keep_the_server(shell: Shell) -> None:
    """B21: it is waited for as long as limits.shutdown_timeout says."""
    shell.write(LONG_ANSWERS.format(patience="200ms"))
    server, port = await shell.serve()
    async with slow_reader(port) as deaf, registered(port, "spark-kim") as kim:
        await ask_for_much(deaf, kim)
        server.signal(signal.SIGTERM)
        assert await server.ended() == 0


@pytest.mark.fault("B21")
async def test_a_stop_waits_until_a_peer_has_what_was_said(shell: Shell) -> None:
    """B21: a lame duck to its links; they end once the peer confirms the last message."""
    shell.write(f"name: spark\nlinks: [{{name: thor, secret: {SECRET}}}]\n")
    server, port = await shell.serve()
    async with connected(port) as client, registered(port, "spark-ori") as ori:
        peer = RawPeer(client.reader, client.writer)
        await peer.link(caps="leave")
        await ori.join("#general")
        await ori.ask("PRIVMSG #general :the last word")
        server.signal(signal.SIGTERM)
        assert (await peer.expect("LEAVE")).params == ("Server shutting down",)
        _, last = (await peer.expect("ACK")).params
        assert peer.seen[-3].params == ("#general", "the last word") and peer.seen[-3].tags["n"] == last
        peer.send(f"ACK {last} 0")
        assert [row.verb for row in await peer.ended()] == ["ERROR"]
    assert await server.ended() == 0


async def test_the_same_signal_once_more_ends_it_at_once(shell: Shell) -> None:
    shell.write(LONG_ANSWERS.format(patience="1h"))
    server, port = await shell.serve()
    async with slow_reader(port) as deaf, registered(port, "spark-kim") as kim:
        await ask_for_much(deaf, kim)
        server.signal(signal.SIGTERM)
        await kim.ended()
        server.signal(signal.SIGTERM)
        assert await server.ended() == -signal.SIGTERM


async def test_sighup_reads_the_configuration_again(shell: Shell) -> None:
    file = shell.write("name: spark\nmotd: before\n")
    server, port = await shell.serve()
    async with registered(port, "spark-ori") as ori:
        file.write_text("name: thor\nmotd: after\n")
        server.signal(signal.SIGHUP)
        said = await server.until("configuration reloaded")
        assert "only a restart changes data_dir, name" in said
        assert motd(await ori.ask("MOTD")) == ["- after"]
        assert {message.source for message in await ori.ask("VERSION")} == {"spark"}


async def test_a_wrong_configuration_is_not_taken_over(shell: Shell) -> None:
    file = shell.write("name: spark\nmotd: before\n")
    server, port = await shell.serve()
    async with registered(port, "spark-ori") as ori:
        file.write_text("name: spark\nmodt: after\n")
        server.signal(signal.SIGHUP)
        said = await server.until("did you mean motd?")
        assert "the configuration stays as it was" in said and f"{file}:2: modt: unknown key" in said
        assert motd(await ori.ask("MOTD")) == ["- before"]


async def test_an_operator_s_rehash_reads_it_too(shell: Shell) -> None:
    text = "name: spark\noperators: [{name: ori, password: s3cret}]\nmotd: before\n"
    file = shell.write(text)
    _, port = await shell.serve()
    async with registered(port, "spark-ori") as ori:
        await ori.ask("OPER ori s3cret")
        file.write_text(text.replace("before", "after"))
        assert "382" in [message.verb for message in await ori.ask("REHASH")]
        assert motd(await ori.ask("MOTD")) == ["- after"]


async def test_a_supervisor_is_told_how_far_it_is(shell: Shell, tmp_path: Path) -> None:
    """sd_notify: ready once clients may connect, reloading, ready again, stopping."""
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(address))
        supervisor.setblocking(False)
        shell.environment["NOTIFY_SOCKET"] = str(address)
        server, port = await shell.serve("--name", "spark")
        assert await told(supervisor) == ["READY=1"]
        async with registered(port, "spark-ori"):
            server.signal(signal.SIGHUP)
            assert (await told(supervisor))[0] == "RELOADING=1"
            assert await told(supervisor) == ["READY=1"]
        server.signal(signal.SIGTERM)
        assert await told(supervisor) == ["STOPPING=1"]
    assert await server.ended() == 0


async def test_a_supervisor_that_is_gone_keeps_nobody_from_serving(shell: Shell, tmp_path: Path) -> None:
    """sd_notify: the variable may be left over in the environment."""
    shell.environment["NOTIFY_SOCKET"] = str(tmp_path / "nobody")
    server, port = await shell.serve("--name", "spark")
    async with registered(port, "spark-ori"):
        server.signal(signal.SIGTERM)
    assert await server.ended() == 0


async def ask_for_much(client: Client, witness: Client) -> None:
    """Have more queued for a client than the kernel takes; the witness sees that all of it was asked for."""
    client.send("NICK spark-ori\r\nUSER ori 0 * :Ori")
    await client.expect("001")
    for number in range(ASKED):
        client.send(f"MOTD\r\nPING end{number}")
    client.send(f"PRIVMSG {witness.nick} :all asked")
    await witness.expect("PRIVMSG", where=lambda message: message.params[-1] == "all asked")


def motd(messages: list[Message]) -> list[str]:
    return [message.params[-1] for message in messages if message.verb == "372"]


async def told(supervisor: socket.socket) -> list[str]:
    async with asyncio.timeout(PATIENCE):
        return (await asyncio.get_running_loop().sock_recv(supervisor, 4096)).decode().splitlines()


@asynccontextmanager
async def slow_reader(port: int) -> AsyncIterator[Client]:
    """A client that takes little at a time, so that what the server has for it waits in the server."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=1024)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
