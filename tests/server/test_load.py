"""Many clients, slow clients, silent clients."""

import asyncio
import socket
from contextlib import AsyncExitStack

import pytest

from culture.config.model import ServerLimits
from culture.server.events import Arrived, Joined
from culture.server.ircd import IRCd
from culture.server.net import keepalive
from tests.server.conftest import Crowd
from tests.support.client import connected, registered
from tests.support.servers import Serve


def verbs(messages: list) -> list[str]:
    return [message.verb for message in messages]


def populate(ircd: IRCd, channel: str, members: int) -> None:
    """Put users without a session into a channel."""
    router = ircd.parts.router
    for number in range(members):
        nick = f"spark-member{number}"
        router.publish(Arrived(router.ids.stamp(), nick, "~u", "host", "R", "spark"))
        router.publish(Joined(router.ids.stamp(), router.network.users[nick].source, channel))


async def deaf(port: int, nick: str, channel: str) -> socket.socket:
    """A client in a channel that reads nothing any more."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, ("127.0.0.1", port))
    await loop.sock_sendall(sock, f"NICK {nick}\r\nUSER d 0 * :D\r\nJOIN {channel}\r\n".encode())
    return sock


@pytest.mark.fault("B1")
async def test_a_client_that_does_not_read_is_dropped_and_nobody_else(crowd: Crowd, ircd: IRCd) -> None:
    """B1"""
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a")
    sock = await deaf(ircd.port, "spark-deaf", "#a")
    await ori.expect("JOIN", "#a", where=lambda each: each.source.startswith("spark-deaf!"))
    gone, sent = False, 0
    for _ in range(400):
        for _ in range(100):
            ori.send("PRIVMSG #a :" + "x" * 400)
        sent += 100
        gone = any(each.verb == "QUIT" for each in await ori.sync())
        if gone:
            break
    assert gone
    quit_seen = [each for each in ori.seen if each.verb == "QUIT"]
    assert [(each.source.split("!")[0], each.params[0]) for each in quit_seen] == [("spark-deaf", "SendQ exceeded")]
    await ada.sync()
    assert sum(each.verb == "PRIVMSG" for each in ada.seen) == sent
    sock.close()


@pytest.mark.fault("B3")
async def test_500_clients_hear_everything_in_order(serve: Serve) -> None:
    """B3: order per sender kept, none lost; the 10,000 messages are a proof of their own (`make proof NAME=load`)."""
    clients, senders, each_says = 500, 5, 20
    async with serve() as ircd, AsyncExitStack() as stack:
        crowd = await asyncio.gather(
            *(stack.enter_async_context(registered(ircd.port, f"spark-c{number}")) for number in range(clients))
        )
        for client in crowd:
            client.send("JOIN #a")
        await asyncio.gather(*(client.expect("366") for client in crowd))
        await asyncio.gather(*(client.sync() for client in crowd))
        for number in range(each_says):
            for sender in crowd[:senders]:
                sender.send(f"PRIVMSG #a :{number}")
        # Everything the senders said is handled once their own PING is answered.
        await asyncio.gather(*(sender.sync() for sender in crowd[:senders]))
        await asyncio.gather(*(client.sync() for client in crowd))
        wanted = [str(number) for number in range(each_says)]
        for position, client in enumerate(crowd):
            heard: dict[str, list[str]] = {}
            for message in client.seen:
                if message.verb == "PRIVMSG":
                    heard.setdefault(message.source.split("!")[0], []).append(message.params[1])
            others = {f"spark-c{number}": wanted for number in range(senders) if number != position}
            assert heard == others


@pytest.mark.fault("B7")
async def test_connections_that_never_register_are_ended(serve: Serve) -> None:
    """B7, with a short timeout; the real one is judged below on the clock."""
    async with (
        serve(limits={"registration_timeout": 1.0}) as ircd,
        # Before the crowd: to end a thousand at once may take longer than one may take to register.
        registered(ircd.port, "spark-ori") as ori,
        AsyncExitStack() as stack,
    ):
        silent = [await stack.enter_async_context(connected(ircd.port)) for _ in range(1000)]
        for client in silent:
            assert verbs(await client.ended()) == ["ERROR"]
        assert await ori.sync() == []
        assert len(ircd.parts.sessions) == 1


@pytest.mark.requirement("B13")
@pytest.mark.fault("B8")
async def test_a_client_that_vanished_is_asked_and_then_gone(serve: Serve) -> None:
    """B8, RFC 2812 §3.7.2: here one that stays connected and never answers."""
    async with (
        serve(limits={"ping_after": 0.3, "ping_timeout": 2.5}) as ircd,
        connected(ircd.port) as mute,
        registered(ircd.port, "spark-ori") as ori,
    ):
        await ori.join("#a")
        mute.send_raw(b"NICK spark-mute\r\nUSER m 0 * :M\r\nJOIN #a\r\n")
        # Meanwhile ori reads, answers each PING, and stays.
        gone = await ori.expect("QUIT")
        assert gone.source.startswith("spark-mute!")
        assert gone.params[0].startswith("Ping timeout")
        lines = []
        while line := await mute.line():
            lines.append(line)
        assert b":spark PING spark\r\n" in lines
        assert lines[-1].startswith(b"ERROR ")


class Silent:
    """What keepalive looks at, without a socket."""

    def __init__(self, user: object) -> None:
        self.user = user
        self.opened = 0.0
        self.connection = type("Pipe", (), {"last_active": 0.0})()
        self.pinged = False
        self.log: list[str] = []

    def send(self, line: bytes) -> None:
        self.log.append(line.decode().split()[1])

    def close(self, reason: str) -> None:
        self.log.append(reason)


@pytest.mark.fault("B7", "B8")
def test_the_default_times_on_a_clock() -> None:
    """B7: 60 s to register. B8: PING at 90 s, gone at 150 s, asked once."""
    limits = ServerLimits()
    user, stranger = Silent(object()), Silent(None)
    for now in range(151):
        keepalive.check([user, stranger], limits, "spark", float(now))  # type: ignore[list-item]
        if now == 59:
            assert stranger.log == []
        if now == 60:
            assert stranger.log == ["Registration timed out"]
        if now == 89:
            assert user.log == []
        if now == 149:
            assert user.log == ["PING"]
    assert user.log == ["PING", "Ping timeout: 150 seconds"]


async def test_a_long_answer_is_made_as_the_client_reads_it(serve: Serve) -> None:
    """Pulled answers: who asks for more than the send queue holds is neither dropped nor buffered for."""
    questions, limits = 800, ServerLimits()
    async with serve() as ircd, registered(ircd.port, "spark-ori") as ori, connected(ircd.port) as ada:
        populate(ircd, "#big", 2000)
        await ada.register("spark-ada")
        for _ in range(questions):
            ada.send("NAMES #big")
        ada.send("PING done")
        await ada.writer.drain()
        [session] = [each for each in ircd.parts.sessions if each.user is not None and each.user.nick == "spark-ada"]
        while not session.is_pulling:
            await ori.sync()
        assert session.connection.waiting <= limits.pull_queue + 512
        ends, last = 0, b""
        while b"PONG" not in last:
            last = await ada.line()
            ends += b" 366 " in last
        assert ends == questions


@pytest.mark.fault("B21")
async def test_a_server_that_stops_tells_its_clients(serve: Serve) -> None:
    """B21: told, flushed, closed; well within 10 s."""
    async with AsyncExitStack() as stack:
        async with serve() as ircd:
            clients = [await stack.enter_async_context(connected(ircd.port)) for _ in range(20)]
            for number, client in enumerate(clients[:10]):
                await client.register(f"spark-c{number}")
                await client.join("#a")
                client.send("PRIVMSG #a :last words")
            await clients[0].sync()
            async with asyncio.timeout(10):
                await ircd.stop("Server shutting down")
        for client in clients:
            got = await client.ended()
            assert verbs(got)[-1] == "ERROR"
            assert "shutting down" in got[-1].params[-1]
            assert "QUIT" not in verbs(got)


@pytest.mark.fault("B1")
async def test_an_agent_may_be_further_behind_than_others(serve: Serve) -> None:
    """B1: 512 KiB for agents; the same slow reader without +B is gone long before."""
    async with (
        serve(limits={"send_queue": 20_000, "agent_send_queue": 50_000_000}) as ircd,
        registered(ircd.port, "spark-ori") as ori,
    ):
        await ori.join("#a")
        person = await deaf(ircd.port, "spark-person", "#a")
        agent = await deaf(ircd.port, "spark-agent", "#a")
        await asyncio.get_running_loop().sock_sendall(agent, b"MODE spark-agent +B\r\n")
        while not any(each.verb == "QUIT" for each in ori.seen):
            for _ in range(100):
                ori.send("PRIVMSG #a :" + "x" * 400)
            await ori.sync()
        gone = [each.source.split("!")[0] for each in ori.seen if each.verb == "QUIT"]
        assert gone == ["spark-person"]
        person.close()
        agent.close()


@pytest.mark.fault("B18")
async def test_one_question_gets_a_thousand_rows_at_most(serve: Serve) -> None:
    """B18: WHO and LIST."""
    async with serve() as ircd, registered(ircd.port, "spark-ori") as ori:
        populate(ircd, "#big", 1200)
        router = ircd.parts.router
        for number in range(1200):
            source = router.network.users[f"spark-member{number}"].source
            router.publish(Joined(router.ids.stamp(), source, f"#room{number}"))
        for question, row, end in (("WHO #big", "352", "315"), ("WHO *", "352", "315"), ("LIST", "322", "323")):
            got = verbs(await ori.ask(question))
            assert got.count(row) == 1000
            assert got[-2:] == ["416", end]
        assert verbs(await ori.ask("WHO spark-member7")) == ["352", "315"]


async def test_coming_and_going_leaves_nothing_behind(serve: Serve) -> None:
    """A small soak; the long one is a proof of its own (`make proof NAME=soak`)."""
    async with serve(channels=()) as ircd:
        async with registered(ircd.port, "spark-warm") as warm:
            await warm.join("#warm")
            warm.send("QUIT")
            await warm.ended()
        before = left_behind(ircd)
        for _ in range(20):
            async with AsyncExitStack() as stack:
                crowd = [await stack.enter_async_context(registered(ircd.port, f"spark-c{n}")) for n in range(5)]
                for client in crowd:
                    await client.ask("JOIN #a,#b")
                    await client.ask("PRIVMSG #a :@spark-c0 hello")
                    await client.ask("INVITE spark-c1 #b")
                    await client.ask("WHO #a")
                crowd[0].send("QUIT")
                await crowd[0].ended()
        async with registered(ircd.port, "spark-last") as last:
            while len(ircd.parts.network.users) > 1:
                await last.sync()
            last.send("QUIT")
            await last.ended()
        assert left_behind(ircd) == before


def left_behind(ircd: IRCd) -> tuple[int, ...]:
    """What of clients and channels is still known, and how many descriptors are open."""
    parts = ircd.parts
    kept = (parts.sessions, parts.network.users, parts.network.channels, parts.router.sessions)
    return (*map(len, kept), parts.router.attached)


async def test_a_sweep_that_fails_is_not_the_last(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """B7: whatever is wrong once, who never registers is ended."""
    check, failed = keepalive.check, asyncio.Event()

    def fail_first(*args: object) -> None:
        if failed.is_set():
            check(*args)  # type: ignore[arg-type]
            return
        failed.set()
        raise RuntimeError("a bug")

    monkeypatch.setattr(keepalive, "check", fail_first)
    async with serve(limits={"registration_timeout": 0.3}) as ircd, connected(ircd.port) as silent:
        assert "Registration timed out" in (await silent.ended())[-1].params[-1]
        assert failed.is_set()
