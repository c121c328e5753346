"""Connections of the users of this machine: nobody of them keeps the others out."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

import pytest

from culture.config import peer_uid
from tests.support.client import connected, registered
from tests.support.people import PASSWORD, accounts_of
from tests.support.servers import Serve

_NOBODY = 65534
_CROWD = """
import os, socket, sys
"x".encode("idna"); os.setgid(65534); os.setuid(65534)
crowd = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(int(sys.argv[2]))]
print("connected", flush=True)
sys.stdin.readline()
for each in crowd:
    each.setblocking(False)
ended = [each for each in crowd if (each.recv(4096) if _readable(each) else b"")]
print(len(ended), flush=True)
sys.stdin.readline()
""".replace("_readable(each)", "__import__('select').select([each], [], [], 0)[0]")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
async def test_other_user_with_a_thousand_connections_keeps_nobody_out(serve: Serve) -> None:
    async with serve(limits={"connections_per_user": 20}) as ircd, registered(ircd.port, "spark-ori") as ori:
        crowd = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _CROWD, str(ircd.port), "200",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert crowd.stdin is not None and crowd.stdout is not None
        try:
            assert await crowd.stdout.readline() == b"connected\n"
            async with registered(ircd.port, "spark-ada") as ada:
                assert await ada.sync() == [] and await ori.sync() == []
            assert len(ircd.parts.sessions) <= 22
            crowd.stdin.write(b"\n")
            assert int(await crowd.stdout.readline()) == 180
        finally:
            crowd.stdin.close()
            await crowd.wait()


@pytest.mark.skipif(not peer_uid.IS_KNOWN, reason="nobody can tell here whose a connection is")
async def test_oldest_unregistered_connection_of_another_user_ends_first(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts_of(serve.args[0], "ori")  # type: ignore[attr-defined]
    async with serve(limits={"connections_per_user": 3}) as ircd, AsyncExitStack() as stack:
        ircd._uids.clear()  # so that our own user is another one to the server
        first = await stack.enter_async_context(connected(ircd.port))
        first.send(f"PASS :ori:{PASSWORD}")
        await first.register("spark-ori")
        silent = [await stack.enter_async_context(connected(ircd.port)) for _ in range(2)]
        second, third = [await stack.enter_async_context(connected(ircd.port)) for _ in range(2)]
        for client in silent:
            [told] = await client.ended()
            assert "Too many connections of your user of this machine" in told.params[-1]
        for client in (second, third):
            client.send(f"PASS :ori:{PASSWORD}")
            await client.register("spark-ori")
        async with connected(ircd.port) as further:
            [refused] = await further.ended()
            assert refused.params == ("Too many connections of your user of this machine",)
        third.send("QUIT")
        await third.ended()
        async with connected(ircd.port) as further:
            assert await further.sync() == []
        assert await first.sync() == []


async def test_unregistered_connections_of_our_own_user_are_bounded(serve: Serve) -> None:
    async with serve(limits={"unregistered_connections": 5}) as ircd, AsyncExitStack() as stack:
        inside = [await stack.enter_async_context(registered(ircd.port, f"spark-c{number}")) for number in range(7)]
        silent = [await stack.enter_async_context(connected(ircd.port)) for _ in range(8)]
        for client in silent[:3]:
            [told] = await client.ended()
            assert "have not registered" in told.params[-1]
        for client in (*silent[3:], *inside):
            assert await client.sync() == []


@pytest.mark.skipif(not peer_uid.IS_KNOWN, reason="nobody can tell here whose a connection is")
async def test_another_user_who_is_logged_in_leaves_the_reserve_of_descriptors(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20 descriptors four are in reserve: the server's own user has half of these, its files the rest."""
    accounts_of(serve.args[0], "ori")  # type: ignore[attr-defined]
    async with serve(limits={"connections_per_user": 50}) as ircd, AsyncExitStack() as stack:
        ircd._groups.other_descriptors = 0
        monkeypatch.setattr("culture.server.net.connection_limits.descriptors", lambda: 20)
        ours = set(ircd._uids)
        ircd._uids.clear()  # so that our own user is another one to the server
        for _ in range(16):
            client = await stack.enter_async_context(connected(ircd.port))
            client.send(f"PASS :ori:{PASSWORD}")
            await client.register("spark-ori")
        async with connected(ircd.port) as refused:
            [told] = await refused.ended()
            assert told.params == ("No room for further connections",)
        ircd._uids.update(ours)
        for number in range(2):
            await stack.enter_async_context(registered(ircd.port, f"spark-c{number}"))
        async with connected(ircd.port) as refused:
            [told] = await refused.ended()
            assert told.params == ("No room for further connections",)


async def test_lingering_connections_give_their_descriptors(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that was told goodbye and stays does not keep others out."""
    async with serve() as ircd, AsyncExitStack() as stack:
        gone = [await stack.enter_async_context(connected(ircd.port)) for _ in range(3)]
        for client in gone:
            client.send("QUIT")
            await client.expect("ERROR")
        assert len(ircd._closing) == 3
        monkeypatch.setattr("culture.server.net.connection_limits.descriptors", lambda: 0)
        for left in (2, 1, 0):
            async with registered(ircd.port, f"spark-c{left}"):
                assert sum(each.is_open for each in ircd._closing) <= left
