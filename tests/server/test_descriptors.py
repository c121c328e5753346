"""Few descriptors: whoever has not registered gives way to whoever comes, and those inside are served on."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from tests.support.client import connected
from tests.support.waiting import PATIENCE

_LIMIT = 40
_PROGRAM = (
    "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2);"
    "sys.argv[1:2] = ['server', 'start', '--foreground']; runpy.run_module('culture', run_name='__main__')"
)


async def test_silent_connections_give_way_and_a_full_server_serves_those_inside(tmp_path: Path) -> None:
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
            silent = [await stack.enter_async_context(connected(port)) for _ in range(2 * _LIMIT)]
            inside = [await stack.enter_async_context(connected(port))]
            await inside[0].register("spark-late")
            [told] = await silent[0].ended()
            assert told.verb == "ERROR" and "No room" in told.params[-1]
            assert await first.sync() == []

            full = None
            while full is None:
                client = await stack.enter_async_context(connected(port))
                client.send(f"NICK spark-c{len(inside)}")
                client.send("USER c 0 * :C")
                answer = await client.receive()
                if answer.verb == "ERROR":
                    full = answer
                else:
                    inside.append(client)
            assert full.params == ("No room for further connections",)
            assert await first.sync() == [] and await inside[-1].sync() != []
            inside[-1].send("QUIT")
            await inside[-1].ended()
            inside[-1].close()
            following = await stack.enter_async_context(connected(port))
            await following.register("spark-following")
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
