"""A page in a browser that sends lines of IRC to the port, in what the browser takes for another protocol.

The browser is a process of its reader, who needs no login at the keyboard: were such lines taken, every page could
speak as them.
"""

import os
from pathlib import Path

import pytest

from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
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
        b"PROPFIND /" + HEADERS,
        b"X-Made-Up /a" + HEADERS,
        b"  search\t/\tHTTP/2.0\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"DESCRIBE rtsp://127.0.0.1/ RTSP/1.0\r\nCSeq: 2\r\n\r\n",
        b"EHLO spark\r\n",
        b"helo spark\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"STAT\r\nRETR 1\r\nDELE 1\r\n",
    ],
    ids=[
        "a-form",
        "a-long-path",
        "a-very-long-path",
        "no-utf8",
        "a-get",
        "only-headers",
        "tls",
        "tls-in-utf8",
        "webdav",
        "any-method",
        "tabs",
        "http-2",
        "rtsp",
        "mail",
        "old-mail",
        "ssh",
        "pop",
    ],
)
async def test_a_page_speaks_as_nobody_by_a_request_to_the_port(serve: Serve, tmp_path: Path, before: bytes) -> None:
    store = AccountStore(tmp_path / "accounts.json", "spark")
    store.add(new_account("ori", UserClass.HUMAN, user=str(os.getuid())))
    async with serve() as ircd, connected(ircd.port) as browser:
        browser.writer.write(before + LINES)
        said = await browser.reader.read()
        assert said.splitlines()[-1].startswith(b"ERROR ") and b" 001 " not in said


async def test_one_unknown_command_before_registration_is_refused_and_no_more(serve: Serve) -> None:
    """Clients try commands that other servers know; a password may look like anything."""
    async with serve() as ircd, connected(ircd.port) as client:
        assert [each.params[1] for each in await client.ask("STARTTLS")] == ["STARTTLS"]
        assert [each.params[1] for each in await client.ask("PROTOCTL NAMESX")] == ["PROTOCTL"]
        client.send("PASS a HTTP/1.1")
        await client.register("spark-ori")
        for _ in range(4):
            assert [each.verb for each in await client.ask("EHLO spark")] == ["421"]
