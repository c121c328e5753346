"""Something that is no server listens where the server should be: it is not waited for."""

import asyncio
from contextlib import suppress

import pytest

from culture.transport import ServerUnreachable, Timing
from tests.support.waiting import PATIENCE
from tests.transport.conftest import Come


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
            with pytest.raises(ServerUnreachable, match=why):
                await ada.irc.start()
