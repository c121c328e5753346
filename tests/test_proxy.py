"""The network that tests put between two programs does as it is told."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import pytest

from tests.support.clock import sleep
from tests.support.ports import bound, reserved
from tests.support.proxy import Proxy, proxied
from tests.support.waiting import PATIENCE

MOMENT = 0.05
"""Long enough for what is not held up."""


@dataclass
class End:
    """One side of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def hear(self, count: int) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return await self.reader.readexactly(count)

    async def rest(self) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return await self.reader.read()

    async def hears_nothing(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(MOMENT):
                await self.reader.read(1)
                return False
        return True


class Setting:
    """A server that waits for connections, and a proxy before it."""

    def __init__(self, proxy: Proxy, arrivals: "asyncio.Queue[End]") -> None:
        self.proxy = proxy
        self._arrivals = arrivals
        self._ends: list[End] = []

    async def dial(self) -> End:
        end = End(*await asyncio.open_connection("127.0.0.1", self.proxy.port))
        self._ends.append(end)
        return end

    async def arrival(self) -> End:
        async with asyncio.timeout(PATIENCE):
            end = await self._arrivals.get()
        self._ends.append(end)
        return end

    async def pair(self) -> tuple[End, End]:
        """A client and what the server has of it."""
        return await self.dial(), await self.arrival()

    async def close(self) -> None:
        while not self._arrivals.empty():
            self._ends.append(self._arrivals.get_nowait())
        for end in self._ends:
            end.writer.close()
            with suppress(ConnectionError):
                await end.writer.wait_closed()


@asynccontextmanager
async def between() -> AsyncIterator[Setting]:
    arrivals: asyncio.Queue[End] = asyncio.Queue()
    server = await asyncio.start_server(lambda *streams: arrivals.put_nowait(End(*streams)), "127.0.0.1", 0)
    async with server, proxied(server.sockets[0].getsockname()[1]) as proxy:
        setting = Setting(proxy, arrivals)
        try:
            yield setting
        finally:
            await setting.close()


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    async with between() as made:
        yield made


async def test_what_is_sent_arrives_and_is_recorded(setting: Setting) -> None:
    client, server = await setting.pair()
    client.writer.write(b"hello")
    assert await server.hear(5) == b"hello"
    server.writer.write(b"welcome")
    assert await client.hear(7) == b"welcome"
    assert setting.proxy.recorded("server") == b"hello"
    assert setting.proxy.recorded("client") == b"welcome"
    setting.proxy.forget()
    assert setting.proxy.recorded("client") == b""


async def test_much_arrives_whole_and_then_the_end(setting: Setting) -> None:
    client, server = await setting.pair()
    much = bytes(range(256)) * 20_000
    client.writer.write(much)
    client.writer.write_eof()
    assert await server.rest() == much
    server.writer.write(much)
    server.writer.close()
    assert await client.rest() == much
    await setting.proxy.until(lambda: setting.proxy.connections == 0)


async def test_a_server_that_is_not_there_is_told_by_a_reset() -> None:
    with reserved() as port:
        async with proxied(port) as proxy:
            client = End(*await asyncio.open_connection("127.0.0.1", proxy.port))
            with suppress(ConnectionResetError):
                assert await client.rest() == b""
            client.writer.close()


async def test_a_broken_side_breaks_the_other(setting: Setting) -> None:
    client, server = await setting.pair()
    client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.writer.transport.abort()
    with pytest.raises(ConnectionResetError):
        await server.rest()


async def test_a_cut_resets_both_sides_and_refuses_others_until_it_heals(setting: Setting) -> None:
    client, server = await setting.pair()
    setting.proxy.cut()
    for end in (client, server):
        with pytest.raises(ConnectionResetError):
            await end.rest()
    with pytest.raises(ConnectionRefusedError):
        await setting.dial()
    setting.proxy.heal()
    client, server = await setting.pair()
    client.writer.write(b"again")
    assert await server.hear(5) == b"again"
    assert setting.proxy.accepted == 2


async def test_a_connection_that_is_cut_before_it_leads_anywhere_is_reset(setting: Setting) -> None:
    setting.proxy.drop()
    client = await setting.dial()
    await setting.proxy.until(lambda: setting.proxy.connections == 1)
    setting.proxy.cut()
    with pytest.raises(ConnectionResetError):
        await client.rest()


async def test_half_open_nobody_notices_and_nothing_is_lost(setting: Setting) -> None:
    client, server = await setting.pair()
    setting.proxy.drop()
    client.writer.write(b"hello")
    server.writer.write(b"welcome")
    assert await server.hears_nothing() and await client.hears_nothing()
    assert setting.proxy.connections == 1
    setting.proxy.heal()
    assert (await server.hear(5), await client.hear(7)) == (b"hello", b"welcome")


async def test_half_open_a_side_that_leaves_is_not_missed(setting: Setting) -> None:
    client, server = await setting.pair()
    setting.proxy.drop()
    client.writer.transport.abort()
    server.writer.write(b"are you there?")
    assert await server.hears_nothing()
    setting.proxy.heal()
    with suppress(ConnectionResetError):
        assert await server.rest() == b""


async def test_half_open_a_new_connection_leads_nowhere_until_it_heals(setting: Setting) -> None:
    setting.proxy.drop()
    client = await setting.dial()
    client.writer.write(b"hello")
    assert await client.hears_nothing()
    setting.proxy.heal()
    assert await (await setting.arrival()).hear(5) == b"hello"


async def test_a_half_open_line_takes_only_so_much(setting: Setting) -> None:
    client, _ = await setting.pair()
    setting.proxy.drop()
    client.writer.transport.set_write_buffer_limits(0)
    client.writer.write(bytes(64 << 20))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(10 * MOMENT):
            await client.writer.drain()
    setting.proxy.cut()
    with suppress(ConnectionResetError):
        await client.rest()


async def test_one_direction_is_dropped_alone(setting: Setting) -> None:
    client, server = await setting.pair()
    setting.proxy.drop("server")
    client.writer.write(b"hello")
    server.writer.write(b"welcome")
    assert await client.hear(7) == b"welcome"
    assert await server.hears_nothing()
    setting.proxy.heal()
    assert await server.hear(5) == b"hello"


async def test_a_delay_holds_everything_up_and_keeps_its_order(setting: Setting) -> None:
    client, server = await setting.pair()
    loop = asyncio.get_running_loop()
    setting.proxy.delay(2 * MOMENT)
    began = loop.time()
    for number in range(10):
        client.writer.write(bytes([number]))
        await sleep(0.001)
    setting.proxy.delay(0)
    client.writer.write(bytes([10]))
    assert await server.hear(11) == bytes(range(11))
    assert loop.time() - began >= 2 * MOMENT
    setting.proxy.delay(2 * MOMENT)
    began = loop.time()
    server.writer.write(b"back")
    assert await client.hear(4) == b"back"
    assert loop.time() - began >= 2 * MOMENT


async def test_many_are_delayed_at_once(setting: Setting) -> None:
    """Delay is no throttle."""
    client, server = await setting.pair()
    loop = asyncio.get_running_loop()
    setting.proxy.delay(4 * MOMENT)
    began = loop.time()
    for _ in range(50):
        client.writer.write(b"-")
        await sleep(0.001)
    await server.hear(50)
    assert loop.time() - began < 50 * 4 * MOMENT / 2


async def test_a_throttled_line_is_slow_and_keeps_nothing_back(setting: Setting) -> None:
    client, server = await setting.pair()
    loop = asyncio.get_running_loop()
    setting.proxy.throttle(10_000)
    began = loop.time()
    client.writer.write(bytes(3_000))
    assert await server.hear(1)
    assert await server.hear(2_999)
    assert loop.time() - began >= 0.2
    setting.proxy.throttle(None)
    client.writer.write(bytes(1 << 20))
    assert await server.hear(1 << 20)


async def test_garbage_comes_between(setting: Setting) -> None:
    client, server = await setting.pair()
    client.writer.write(b"hello")
    assert await server.hear(5) == b"hello"
    setting.proxy.garbage(b"\0\xff", towards="server")
    setting.proxy.garbage(b"noise", towards="client")
    assert (await server.hear(2), await client.hear(5)) == (b"\0\xff", b"noise")
    assert setting.proxy.recorded("server") == b"hello", "only what the sides said"


async def test_what_is_recorded_is_bounded(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.proxy._RECORDED", 8)
    client, server = await setting.pair()
    for _ in range(3):
        client.writer.write(b"hello")
        assert await server.hear(5) == b"hello"
    assert setting.proxy.recorded("server") == b"hellohel"


async def test_a_reserved_port_is_refused_until_somebody_listens() -> None:
    with reserved() as port:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            with bound(port) as listening:
                listening.listen()
                socket.create_connection(("127.0.0.1", port)).close()
