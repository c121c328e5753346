"""A page in a browser that sends lines of IRC to the port, in what the browser takes for another protocol.

The browser is a process of its reader, who needs no login at the keyboard: were such lines taken, every page could
speak as them.
"""

import os
from pathlib import Path

import pytest

from culture.protocol.vocabulary import UserClass
from culture.server.accounts.model import new_account
from culture.server.accounts.store import AccountStore
from tests.support.client import connected
from tests.support.servers import Serve

LINES = b"NICK spark-ori\r\nUSER ori 0 * :ori\r\nPRIVMSG spark-ori :run this\r\n"
HEADERS = b" HTTP/1.1\r\nHost: 127.0.0.1:6670\r\nContent-Type: text/plain\r\n\r\n"


@pytest.mark.parametrize(
    "before",
    [
        b"POST /" + HEADERS,
        b"POST /" + b"a" * 600 + HEADERS,
        b"POST /" + b"a" * 9000 + HEADERS,
        b"POST /\xff" + HEADERS,
        b"GET /" + b"a" * 600 + HEADERS,
        b"a" * 600 + HEADERS,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x90" * 32 + b"a ticket\r\n",
        b"\x16\x03\x01\x02\n",
    ],
    ids=["a-form", "a-long-path", "a-very-long-path", "no-utf8", "a-get", "only-headers", "tls", "tls-in-utf8"],
)
async def test_a_page_speaks_as_nobody_by_a_request_to_the_port(serve: Serve, tmp_path: Path, before: bytes) -> None:
    store = AccountStore(tmp_path / "accounts.json", "spark")
    store.add(new_account("ori", UserClass.HUMAN, user=str(os.getuid())))
    async with serve() as ircd, connected(ircd.port) as browser:
        browser.writer.write(before + LINES)
        said = await browser.reader.read()
        assert said.splitlines()[-1].startswith(b"ERROR ") and b" 001 " not in said
