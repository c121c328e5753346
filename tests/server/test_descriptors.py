"""No descriptor left: those inside go on, those outside wait, and come in when there is room."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from tests.support.client import PATIENCE, Client, connected

_LIMIT = 40
_PROGRAM = (
    "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2);"
    "sys.argv[1:2] = ['server', 'start', '--foreground']; runpy.run_module('culture', run_name='__main__')"
)


async def test_a_server_without_descriptors_serves_on_and_accepts_again(tmp_path: Path) -> None:
    environment = {**os.environ, "CULTURE_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _PROGRAM, str(_LIMIT), "--name", "spark", "--port", "0",
        env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(3 * PATIENCE), AsyncExitStack() as stack:
            port = await _port(server)
            first = await stack.enter_async_context(connected(port))
            await first.register("spark-first")
            crowd: list[Client] = []
            while not await _has_said(server, b"cannot accept"):
                crowd.append(await stack.enter_async_context(connected(port)))
            late = await stack.enter_async_context(connected(port))
            late.send("NICK spark-late")
            late.send("USER l 0 * :L")
            assert await first.sync() == []
            for client in crowd:
                client.close()
            await late.expect("001", "spark-late")
            assert await first.sync() == []
    finally:
        server.terminate()
        await server.communicate()


async def _port(server: asyncio.subprocess.Process) -> int:
    """The port in the line that says where it listens."""
    assert server.stderr is not None
    while line := await server.stderr.readline():
        if b"listens on" in line:
            return int(line.split()[-1])
    raise AssertionError("the server did not start")


async def _has_said(server: asyncio.subprocess.Process, words: bytes) -> bool:
    """Is there a line with these words by now?"""
    assert server.stderr is not None
    try:
        async with asyncio.timeout(0.05):
            return words in await server.stderr.readline()
    except TimeoutError:
        return False
