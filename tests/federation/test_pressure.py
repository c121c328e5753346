"""Peers that say too much or read too slowly, and a disk that takes nothing: it costs their link, and nobody else."""

import asyncio
import socket
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from culture.config.links import Federation, LinkConfig
from culture.config.model import Listen
from culture.federation import backfill, log, throttle
from culture.federation.link import Stage
from culture.server.ircd import IRCd
from culture.server.skill import Host
from tests.federation.raw import SECRET, RawPeer, mesh_of, raw_peer
from tests.federation.test_backfill import PAIR, net
from tests.support.client import registered
from tests.support.ports import reserved
from tests.support.proxy import Proxy, proxied
from tests.support.servers import serving
from tests.support.waiting import until

SPARK, THOR = LinkConfig(name="spark", secret=SECRET), LinkConfig(name="thor", secret=SECRET)


def flood(peer: RawPeer, count: int) -> None:
    """So many messages at once."""
    lines = (
        f"@n={seq};id=thor.5f0c2a91.{seq};at=1773914400000000 :thor-bob!user@host PRIVMSG #x :{seq}\r\n"
        for seq in range(1_000, 1_000 + count)
    )
    peer.send_raw("".join(lines).encode())


@pytest.mark.fault("D14", part="a link is throttled from 30,000 lines a second on, as 20,000 must be relayed")
async def test_a_peer_that_floods_is_read_slowly_and_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "RATE", 2_000.0)
    monkeypatch.setattr(throttle, "BURST", 500.0)
    async with serving(tmp_path, links=(THOR,)) as ircd, raw_peer(ircd) as peer:
        await peer.link()
        async with registered(ircd.port, "spark-ori") as ori, registered(ircd.port, "spark-eve") as eve:
            mesh = mesh_of(ircd)
            before = mesh.log.position
            flood(peer, 3_000)
            paused = answered = 0
            async with asyncio.timeout(30):
                while mesh.log.position < before + 3_000:
                    await ori.ask("PRIVMSG spark-eve :still here?")
                    answered += 1
                    paused += bool(mesh.throttle._paused)
            await eve.expect("PRIVMSG", "spark-eve")
            assert paused and answered > 10
            assert mesh.links["thor"].link.stage is Stage.LIVE
            await peer.expect("ACK", "3999")


@asynccontextmanager
async def linked(folder: Path) -> AsyncIterator[tuple[IRCd, Proxy]]:
    """Two servers with a proxy between."""
    with reserved() as port:
        settings = {"federation": Federation(ping=1.0, timeout=20.0)}
        async with (
            serving(folder / "thor", name="thor", listen=(Listen(port=port),), links=(SPARK,)),
            proxied(port) as proxy,
            serving(
                folder / "spark",
                links=(LinkConfig(name="thor", secret=SECRET, address=f"127.0.0.1:{proxy.port}"),),
                **settings,
            ) as spark,
        ):
            mesh = mesh_of(spark)
            await until(lambda: "thor" in mesh.links and mesh.links["thor"].link.stage is Stage.LIVE)
            yield spark, proxy


@pytest.mark.fault("D23")
async def test_a_slow_link_is_not_filled_beyond_its_bound_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "_TOO_MUCH", 1 << 16)
    monkeypatch.setattr(backfill, "_MUCH", 1 << 14)
    monkeypatch.setattr(backfill, "_CHUNK", 50)
    async with linked(tmp_path) as (spark, proxy), registered(spark.port, "spark-ori") as ori:
        await ori.join("#x")
        mesh = mesh_of(spark)
        peer = mesh.links["thor"]
        # Otherwise the kernel would take megabytes before anything waits.
        peer.connection._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        proxy.throttle(7_000)
        proxy.delay(2.0)
        most = 0
        for number in range(4_000):
            ori.send(f"PRIVMSG #x :{number} {'x' * 300}")
            if number % 50 == 0:
                await ori.sync()
                # What is not on disk yet is sent from memory when the peer has caught up, however much it is.
                await until(lambda: mesh.log.committed >= mesh.log.position)
                most = max(most, peer.connection.waiting)
        await ori.sync()
        assert peer.link.stage is Stage.SYNCING and 1 << 16 < most < 1 << 19
        proxy.throttle(None)
        proxy.delay(0)
        await until(lambda: peer.link.acked >= mesh.log.position)
        assert mesh.links["thor"] is peer and peer.link.stage is Stage.LIVE


async def test_a_log_that_cannot_be_written_stops_no_talk_and_acknowledges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "_PATIENCE", 0.2)
    async with serving(tmp_path, links=(THOR,)) as ircd, raw_peer(ircd) as peer:
        await peer.link()
        async with registered(ircd.port, "spark-ori") as ori:
            await ori.join("#x")
            told: list[str] = []
            mesh = mesh_of(ircd)
            monkeypatch.setattr(mesh.log, "_tell", told.append)
            with closing(sqlite3.connect(mesh.host.folder / "log.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                flood(peer, 1)
                await ori.expect("PRIVMSG", "#x", "1000")
                ori.send("PRIVMSG #x :and back")
                await peer.expect("PRIVMSG", "#x", "and back")
                await until(lambda: len(told) == 1)
                assert not any(line.verb == "ACK" for line in peer.seen)
                other.execute("ROLLBACK")
            assert (await peer.expect("ACK")).params[0] == "1000"
            await until(lambda: len(told) == 2)


@pytest.mark.fault("D14")
async def test_a_disk_that_lets_nothing_be_forgotten_switches_nothing_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[float] = []

    async def prune(self: log.EventLog, before: float) -> int:
        tries.append(before)
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(log.EventLog, "prune", prune)
    async with serving(tmp_path, links=(THOR,), federation=Federation(ping=0.1, timeout=5.0)) as ircd:
        await until(lambda: bool(tries))
        mesh = mesh_of(ircd)
        looks: list[None] = []
        monkeypatch.setattr(mesh.standing, "look", lambda: looks.append(None))
        await until(lambda: bool(looks))
        assert not ircd.parts.skills.off


async def test_who_is_not_read_for_long_is_not_taken_for_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk hangs: whoever says more than waits for it already is read when it goes on."""
    async with net(tmp_path, PAIR) as made:
        await made.heal()
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]
        peer = alfa.mesh.links["bravo"]
        late = alfa.mesh.host.monotonic() + 3 * alfa.mesh.settings.timeout
        monkeypatch.setattr(throttle, "_STEP", 0)
        with monkeypatch.context() as hanging:
            hanging.setattr(throttle, "BACKLOG", 0)
            bravo.say("#x")
            await made.carry(PAIR[0])
            monkeypatch.setattr(Host, "monotonic", lambda host: late)
            alfa.mesh._look_after(peer)
            assert peer.link.stage is Stage.LIVE
        await made.breathe()
        assert not alfa.mesh.throttle.is_paused(peer)
        alfa.mesh._look_after(peer)
        assert peer.link.stage is Stage.LIVE
