"""Somebody or something else listens where the server should be: they are told nothing, and not waited for."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from culture.transport import Address, Condition, Identity, Timing, Unreachable
from tests.support.client import PATIENCE
from tests.transport.conftest import Come

SECRET = "a-token-that-nobody-else-may-have"
# Says what a server says until it is told how to log in; then prints what it was told.
IMPOSTOR = """
import os, socket
os.setuid(65534)
own = socket.create_server(("127.0.0.1", 0))
print(own.getsockname()[1], flush=True)
while True:
    client, _ = own.accept()
    stream = client.makefile("rw", newline="\\r\\n")
    for line in stream:
        verb = line.split()[0]
        if line.startswith("CAP LS"):
            print(":s CAP * LS :sasl=PLAIN", file=stream, flush=True)
        elif line.startswith("CAP REQ"):
            print(":s CAP * ACK :sasl", file=stream, flush=True)
        elif line.strip() == "AUTHENTICATE PLAIN":
            print("AUTHENTICATE +", file=stream, flush=True)
        elif verb == "AUTHENTICATE":
            print("got", line.strip(), flush=True)
"""


@pytest.fixture
async def impostor() -> AsyncIterator[asyncio.subprocess.Process]:
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", IMPOSTOR, stdout=asyncio.subprocess.PIPE)
    yield process
    if process.returncode is None:
        process.kill()
    await process.wait()


async def line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        return (await process.stdout.readline()).decode().strip()


@pytest.mark.fault("C10")
async def test_a_token_is_not_told_to_another_user(impostor: asyncio.subprocess.Process, come: Come) -> None:
    port = int(await line(impostor))
    ada = await come(port, "", wait=False, identity=Identity("spark-ada", "ada", SECRET))
    starting = asyncio.create_task(ada.irc.start())
    await ada.until(lambda: any(state is Condition.LOST for state, _ in ada.states))
    starting.cancel()
    reason = next(why for state, why in ada.states if state is Condition.LOST)
    assert reason.startswith("user nobody listens where the server should be, and is told no password")
    assert "server.user: nobody" in reason
    impostor.kill()
    assert await line(impostor) == "", "it was told something"


async def test_a_user_who_is_named_is_trusted(impostor: asyncio.subprocess.Process, come: Come) -> None:
    port = int(await line(impostor))
    there = Address("127.0.0.1", port, user="nobody")
    ada = await come(port, "", wait=False, identity=Identity("spark-ada", "ada", SECRET), address=there)
    starting = asyncio.create_task(ada.irc.start())
    assert (await line(impostor)).startswith("got AUTHENTICATE ")
    starting.cancel()


@pytest.mark.parametrize(
    ("says", "why"),
    [
        (b"", "nothing came within"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak IRC"),
        (b"<!DOCTYPE HTML>\n<html>\n", "does not speak IRC"),
        (b"220 mail.example ESMTP\r\n", "does not speak IRC"),
        (b":s NOTICE * :one moment\r\nERROR :Too many connections\r\n", "Too many connections"),
    ],
)
async def test_who_tries_once_is_told_at_once_that_no_server_is_there(come: Come, says: bytes, why: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(says)
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        ada = await come(port, "spark-ada", wait=False, timing=Timing(first_word=0.5 if says else 0.05), patient=False)
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(Unreachable, match=why):
                await ada.irc.start()
