"""The bridge as a child process, over standard input and output."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from culture.server.ircd import IRCd
from tests.bridge.program import Program
from tests.support.client import registered
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("-m", "culture", "bridge", "stdio")
# A parent that is killed, and whose pipe to the bridge is held open by this test.
PARENT = "import subprocess, sys; child = subprocess.Popen(sys.argv[1:]); child.wait()"


def environment(ircd: IRCd, home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CULTURE_HOME": str(home),
        "IRC_SERVER": "127.0.0.1",
        "IRC_PORT": str(ircd.port),
        "IRC_NICK": "cursor",
    }


@pytest.mark.requirement("N04", "N12")
async def test_the_official_client_starts_it_and_talks(ircd: IRCd, tmp_path: Path) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=list(WORDS), env=environment(ircd, tmp_path), cwd=str(ROOT)
    )
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with Client(parameters) as client:
            program = Program(client)
            await program.call("send_message", channel="#general", text="from the editor")
            said = await ori.expect("PRIVMSG", "#general", "from the editor")
            assert said.source.startswith("spark-cursor!")
            found = await program.call("read_messages", channel="#general", limit=1)
            assert found["messages"][0]["sender"] == "spark-cursor"
        await ori.expect("QUIT", where=lambda message: message.source.startswith("spark-cursor!"))


@asynccontextmanager
async def parent_of_a_bridge(ircd: IRCd, home: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that has started a bridge."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PARENT,
        sys.executable,
        *WORDS,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment(ircd, home),
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.fault("G11")
@pytest.mark.parametrize("how", ["killed", "closed"])
async def test_it_ends_with_whoever_started_it(ircd: IRCd, tmp_path: Path, how: str) -> None:
    async with registered(ircd.port, "spark-ori") as ori, AsyncExitStack() as stack:
        await ori.join("#general")
        parent = await stack.enter_async_context(parent_of_a_bridge(ircd, tmp_path))
        await ori.expect("JOIN", "#general", where=lambda message: message.source.startswith("spark-cursor!"))
        assert parent.stdin is not None
        assert parent.stdout is not None
        if how == "killed":
            parent.send_signal(signal.SIGKILL)
            await parent.wait()
        else:
            parent.stdin.close()
        await ori.expect("QUIT", where=lambda message: message.source.startswith("spark-cursor!"))
        async with asyncio.timeout(PATIENCE):
            assert await parent.stdout.read() == b"", "nobody holds the other end any longer"


@pytest.mark.fault("G12", "G7")
async def test_nonsense_and_five_megabytes_do_not_end_it(ircd: IRCd, tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    long = {"name": "send_message", "arguments": {"channel": "#general", "text": "x" * 5_000_000}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        "nonsense",
        "[]",
        "[{}]",
        "\u0000",
        {"jsonrpc": "1.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": long},
        {"jsonrpc": "2.0", "id": 4, "method": "no/such/thing"},
        {"jsonrpc": "2.0", "id": 5, "method": "tools/list"},
    ]
    data = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines).encode()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *WORDS,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment(ircd, tmp_path),
        cwd=ROOT,
        limit=1 << 24,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(data)
        answers = {}
        async with asyncio.timeout(2 * PATIENCE):
            while 5 not in answers or 3 not in answers:
                answer = json.loads(await process.stdout.readline())
                answers[answer.get("id")] = answer
    finally:
        process.kill()
        await process.communicate()
    assert answers[3]["result"]["isError"]
    assert "longer than 65536 bytes" in answers[3]["result"]["content"][0]["text"]
    assert answers[4]["error"]["code"] == -32601
    assert len(answers[5]["result"]["tools"]) == 5
