"""Who may be linked: names, secrets, certificates; nothing of a stranger is believed (decision 10)."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from culture.cli.server import certificate
from culture.config.links import Federation, LinkConfig
from culture.config.listen_policy import Tls
from culture.config.model import Listen
from culture.server.ircd import IRCd
from tests.federation.raw import SECRET, RawPeer, mesh_of, raw_peer
from tests.support.client import connected, registered
from tests.support.elsewhere import elsewhere
from tests.support.people import accounts_of
from tests.support.ports import reserved
from tests.support.servers import serving
from tests.support.tls import client_context, made
from tests.support.waiting import until

THOR = LinkConfig(name="thor", secret=SECRET)
BAD = "Bad name or secret"


@asynccontextmanager
async def spark(folder: Path, *links: LinkConfig, **settings: Any) -> AsyncIterator[IRCd]:
    settings = {"name": "spark.local", "description": "DGX Spark IRC", **settings}
    async with serving(folder / "spark", links=links or (THOR,), **settings) as ircd:
        yield ircd


async def refused(peer: RawPeer, name: str = "thor", secret: str = SECRET) -> str:
    """Why a handshake is refused."""
    peer.greet(name, secret)
    said = await peer.ended()
    assert [message.verb for message in said] == ["ERROR"]
    return said[0].params[0]


@pytest.mark.requirement("E01", "E19")
async def test_both_sides_show_secret_and_name_as_documented(tmp_path: Path) -> None:
    async with spark(tmp_path, LinkConfig(name="thor.local", secret=SECRET)) as ircd, raw_peer(ircd) as peer:
        peer.send(f"PASS {SECRET}")
        peer.send("SERVER thor.local 1 :Jetson Thor IRC")
        assert str(await peer.receive()) == f"PASS {SECRET}"
        assert str(await peer.receive()) == "SERVER spark.local 1 :DGX Spark IRC"
        assert (await peer.receive()).verb == "LINK"
        peer.agree()
        await peer.expect("EOBACKFILL")
        assert list(mesh_of(ircd).links) == ["thor"]
        there = ircd.parts.network.servers["thor"]
        assert (there.name, there.description, there.hops) == ("thor.local", "Jetson Thor IRC", 1)


@pytest.mark.requirement("E02")
@pytest.mark.fault("D1")
@pytest.mark.parametrize(("name", "secret"), [("thor", "wrong-horse"), ("odin", SECRET), ("thor.local", SECRET)])
async def test_a_wrong_name_or_secret_gets_one_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, secret: str
) -> None:
    caplog.set_level(logging.DEBUG)
    async with spark(tmp_path) as ircd, raw_peer(ircd) as peer:
        assert await refused(peer, name, secret) == BAD
        assert not mesh_of(ircd).links
    assert secret not in caplog.text and SECRET not in caplog.text


async def test_a_server_without_pass_is_refused(tmp_path: Path) -> None:
    async with spark(tmp_path) as ircd, raw_peer(ircd) as peer:
        peer.send("SERVER thor 1 :a server")
        assert (await peer.expect("ERROR")).params[0] == "PASS comes before SERVER"


@pytest.mark.fault("D4")
async def test_a_server_is_not_linked_to_itself(tmp_path: Path) -> None:
    async with spark(tmp_path) as ircd, raw_peer(ircd) as peer:
        assert await refused(peer, "spark.elsewhere") == "A server is not linked to itself"


@pytest.mark.fault("D4")
async def test_who_dials_itself_hears_of_it(tmp_path: Path) -> None:
    with reserved() as port:
        link = LinkConfig(name="thor", secret=SECRET, address=f"localhost:{port}", tls=False)
        async with spark(tmp_path, link, listen=(Listen(port=port),)) as ircd:
            mesh = mesh_of(ircd)
            await until(lambda: "not linked to itself" in mesh.dialler.problems.get("thor", ""))
            assert not mesh.links and not mesh.host.network.servers


async def test_nothing_is_taken_before_both_sides_are_known(tmp_path: Path) -> None:
    async with spark(tmp_path) as ircd, raw_peer(ircd) as peer:
        peer.arrive("thor-bob")
        peer.greet()
        await peer.expect("LINK")
        assert ircd.parts.network.user("thor-bob") is None
        peer.arrive("thor-bob")
        assert (await peer.expect("ERROR")).params[0] == "LINK comes first"
        assert ircd.parts.network.user("thor-bob") is None


async def test_a_client_that_says_server_where_nobody_links_gets_421(tmp_path: Path) -> None:
    async with serving(tmp_path) as ircd, connected(ircd.port) as client:
        client.send(f"PASS {SECRET}")
        client.send("SERVER thor 1 :a server")
        assert (await client.receive()).verb in ("421", "451")


async def test_who_is_a_client_already_becomes_no_server(tmp_path: Path) -> None:
    async with spark(tmp_path) as ircd, registered(ircd.port, "spark-ori") as ori:
        assert [m.verb for m in await ori.ask("SERVER thor 1 :a server")] == ["462"]


@pytest.mark.fault("D1")
async def test_too_many_tries_lock_out_that_name_and_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    odin = LinkConfig(name="odin", secret="another-horse")
    async with spark(tmp_path, THOR, odin, limits={"failed_logins": 2}) as ircd:
        for secret, why in [("wrong-one", BAD), ("wrong-two", BAD), (SECRET, "Too many failed attempts")]:
            async with raw_peer(ircd) as peer:
                assert why in await refused(peer, "thor", secret)
        async with raw_peer(ircd) as peer:
            await peer.link("odin", "another-horse")
            assert list(mesh_of(ircd).links) == ["odin"]
    assert len([record for record in caplog.records if "is refused" in record.message]) == 1


async def test_who_tries_too_often_goes_on_to_say_what_is_wrong(tmp_path: Path) -> None:
    async with spark(tmp_path, THOR, limits={"failed_logins": 1}) as ircd:
        dials = LinkConfig(name="spark.local", secret="another-horse", address=f"127.0.0.1:{ircd.port}")
        async with serving(tmp_path / "thor", name="thor", links=(dials,)) as thor:
            await until(lambda: "spark" in mesh_of(thor).dialler.problems)
            calls = mesh_of(thor).dialler._calls
            await until(lambda: calls["spark"].backoff.pause >= 2.0)  # it was told twice
            assert mesh_of(thor).dialler.problems["spark"] == f"refused: {BAD}"
            [entry] = mesh_of(ircd).status.figures()
            assert entry["problem"].endswith("was refused: unknown name or wrong secret")


class TestTls:
    """Links with pinned certificates."""

    @pytest.fixture
    async def linked(self, tmp_path: Path) -> AsyncIterator[tuple[IRCd, Path]]:
        """A server with a TLS listener that knows thor by its certificate."""
        own, _ = made(tmp_path, "spark")
        _, certificate = made(tmp_path, "thor")
        link = LinkConfig(name="thor", secret=SECRET, fingerprint=certificate)
        async with spark(tmp_path, link, listen=(Listen(port=0, tls=own), Listen(port=0))) as ircd:
            yield ircd, tmp_path

    @pytest.mark.fault("D1")
    async def test_without_tls_it_is_refused(self, linked: tuple[IRCd, Path]) -> None:
        ircd, _ = linked
        async with raw_peer(ircd, ircd.ports[1]) as peer:
            assert await refused(peer) == "This link needs TLS"

    @pytest.mark.fault("D2")
    async def test_another_certificate_is_refused(self, linked: tuple[IRCd, Path]) -> None:
        ircd, folder = linked
        stranger, _ = made(folder, "stranger")
        async with raw_peer(ircd, tls=client_context(stranger)) as peer:
            assert await refused(peer) == "Bad certificate"

    @pytest.mark.fault("D1")
    async def test_a_recorded_handshake_is_worth_nothing(self, linked: tuple[IRCd, Path]) -> None:
        """Whoever replays it over a connection of their own lacks the certificate's key."""
        ircd, folder = linked
        thor = Tls(certificate=folder / "thor.pem", key=folder / "thor.key")
        async with raw_peer(ircd, tls=client_context(thor)) as peer:
            recorded = f"PASS {SECRET}\r\nSERVER thor 1 :a server\r\n".encode()
            peer.send_raw(recorded)
            await peer.expect("LINK")
        async with raw_peer(ircd, tls=client_context()) as peer:
            peer.send_raw(recorded)
            assert (await peer.expect("ERROR")).params[0] == "Bad certificate"

    @pytest.mark.fault("D2")
    async def test_our_secret_is_not_shown_to_another_certificate(self, tmp_path: Path) -> None:
        stranger, _ = made(tmp_path, "stranger")
        _, expected = made(tmp_path, "thor")
        heard: list[bytes] = []
        context = _server_context(stranger)

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.read())
            writer.close()

        server = await asyncio.start_server(listen, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        link = LinkConfig(name="thor", secret=SECRET, address=f"127.0.0.1:{port}", fingerprint=expected)
        async with server, spark(tmp_path, link) as ircd:
            await until(lambda: bool(heard))
            assert set(heard) == {b""}
            await until(lambda: "another certificate" in mesh_of(ircd).dialler.problems.get("thor", ""))

    async def test_who_has_no_certificate_to_show_hears_of_it(self, linked: tuple[IRCd, Path]) -> None:
        ircd, folder = linked
        there = certificate.fingerprint_of(folder / "spark.pem")
        dials = LinkConfig(name="spark.local", secret=SECRET, address=f"127.0.0.1:{ircd.port}", fingerprint=there)
        async with serving(folder / "thor", name="thor", links=(dials,)) as thor:
            await until(lambda: "none to show" in mesh_of(thor).dialler.problems.get("spark", ""))
            [entry] = mesh_of(ircd).status.figures()
            assert entry["state"] == "waiting" and entry["problem"].endswith("was refused: it showed no certificate")

    async def test_which_certificate_was_shown_is_said(self, linked: tuple[IRCd, Path]) -> None:
        ircd, folder = linked
        stranger, shown = made(folder, "stranger")
        async with raw_peer(ircd, tls=client_context(stranger)) as peer:
            await refused(peer)
        [entry] = mesh_of(ircd).status.figures()
        assert f"another certificate, SHA-256 {shown}" in entry["problem"]
        thor = Tls(certificate=folder / "thor.pem", key=folder / "thor.key")
        async with raw_peer(ircd, tls=client_context(thor)) as peer:
            await peer.link()
            assert not mesh_of(ircd).dialler.problems

    @pytest.mark.requirement("E17")
    async def test_two_servers_link_by_their_certificates(self, tmp_path: Path) -> None:
        own, own_print = made(tmp_path, "spark")
        theirs, their_print = made(tmp_path, "thor")
        waits = LinkConfig(name="spark.local", secret=SECRET, fingerprint=own_print)
        async with serving(
            tmp_path / "thor", name="thor", listen=(Listen(port=0, tls=theirs),), links=(waits,)
        ) as thor:
            dials = LinkConfig(name="thor", secret=SECRET, address=f"127.0.0.1:{thor.port}", fingerprint=their_print)
            async with spark(tmp_path, dials, listen=(Listen(port=0, tls=own),)) as ircd:
                await until(lambda: "thor" in mesh_of(ircd).links and "spark" in mesh_of(thor).links)
                assert mesh_of(ircd).links["thor"].certificate() == their_print
                assert mesh_of(thor).links["spark"].certificate() == own_print


def _server_context(files: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    return context


@pytest.mark.fault("D1")
async def test_from_another_machine_it_takes_a_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts_of(tmp_path, "ori")
    with elsewhere(monkeypatch) as there:
        own, _ = made(tmp_path, "spark")
        listen = (Listen(host=there.host, port=0, tls=own),)
        async with (
            spark(tmp_path, listen=listen, accounts_file=tmp_path / "accounts.json") as ircd,
            connected(ircd.port, there.host, client_context()) as client,
        ):
            peer = RawPeer(client.reader, client.writer)
            assert await refused(peer) == "This link needs a certificate"


class TestOneName:
    """A name is one server's in the whole mesh."""

    @pytest.mark.requirement("A12", "A13")
    @pytest.mark.fault("D3")
    async def test_a_second_server_of_a_linked_name_is_refused(self, tmp_path: Path) -> None:
        async with spark(tmp_path) as ircd, raw_peer(ircd) as first, raw_peer(ircd) as second:
            await first.link()
            second.greet()
            await second.expect("SERVER")
            second.agree(log="another", epoch="another")
            assert "Another server called thor" in (await second.expect("ERROR")).params[0]
            await first.answered()
            assert list(mesh_of(ircd).links) == ["thor"]

    @pytest.mark.fault("D3")
    async def test_the_same_server_that_comes_again_replaces_its_dead_link(self, tmp_path: Path) -> None:
        async with spark(tmp_path) as ircd, raw_peer(ircd) as first, raw_peer(ircd) as second:
            await first.link()
            await second.link()
            assert "Replaced" in (await first.expect("ERROR")).params[0]
            await second.answered()
            assert "thor" in ircd.parts.network.servers

    @pytest.mark.requirement("A13")
    @pytest.mark.fault("D3")
    async def test_a_name_behind_another_peer_is_taken_as_well(self, tmp_path: Path) -> None:
        odin = LinkConfig(name="odin", secret=SECRET)
        async with spark(tmp_path, THOR, odin) as ircd, raw_peer(ircd) as peer, raw_peer(ircd) as second:
            await peer.link("odin")
            peer.send("@peers=spark,thor :odin LINKSTATE odin 1773914400000001 :odin")
            peer.send("@peers=odin :thor LINKSTATE thor 1773914400000001 :the first of that name")
            peer.send(":thor ROSTER thor 11111111 5")
            peer.send(":thor ENDROSTER thor")
            await peer.answered()
            assert "thor" in ircd.parts.network.servers
            second.greet()
            await second.expect("SERVER")
            second.agree(log="another", epoch="22222222")
            assert "in the mesh already" in (await second.expect("ERROR")).params[0]
            await peer.answered()
            assert "thor" in ircd.parts.network.servers and list(mesh_of(ircd).links) == ["odin"]

    @pytest.mark.requirement("A13")
    @pytest.mark.fault("D3")
    async def test_of_two_behind_different_peers_the_first_stays_until_it_is_gone(self, tmp_path: Path) -> None:
        links = [LinkConfig(name=name, secret=SECRET) for name in ("odin", "frigg")]
        async with spark(tmp_path, *links) as ircd, raw_peer(ircd) as odin, raw_peer(ircd) as frigg:
            for peer, name, epoch in ((odin, "odin", "11111111"), (frigg, "frigg", "22222222")):
                await peer.link(name, log=name, epoch=name)
                peer.send(f"@peers=spark,thor;epoch={name} :{name} LINKSTATE {name} 1773914400000001 :{name}")
                peer.send(f"@peers={name};epoch={epoch} :thor LINKSTATE thor 1773914400000005 :behind {name}")
                await peer.answered()
                assert ircd.parts.network.servers["thor"].via == "odin"
            odin.close()
            await until(lambda: "odin" not in mesh_of(ircd).links)
            assert ircd.parts.network.servers["thor"].description == "behind frigg"

    async def test_a_version_that_nobody_could_outdo_is_passed_over(self, tmp_path: Path) -> None:
        async with spark(tmp_path) as ircd, raw_peer(ircd) as peer:
            await peer.link()
            for name in ("spark", "odin"):
                peer.send(f"@peers=thor :{name} LINKSTATE {name} {(1 << 62) - 1} :forged")
            await peer.answered()
            assert "odin" not in mesh_of(ircd).topology.states
            assert int(mesh_of(ircd).presence.own_state().params[1]) < 1 << 61


class TestVersion:
    """Later versions may differ."""

    async def test_a_newer_one_that_speaks_ours_is_linked(self, tmp_path: Path) -> None:
        async with spark(tmp_path) as ircd, raw_peer(ircd) as peer:
            peer.greet()
            await peer.expect("SERVER")
            peer.agree(version=7, oldest=1)
            await peer.expect("EOBACKFILL")
            assert list(mesh_of(ircd).links) == ["thor"]

    @pytest.mark.fault("D15")
    async def test_one_that_does_not_is_told_so(self, tmp_path: Path) -> None:
        async with spark(tmp_path) as ircd, raw_peer(ircd) as peer:
            peer.greet()
            await peer.expect("SERVER")
            peer.agree(version=7, oldest=6)
            assert "Version 7 of the protocol" in (await peer.expect("ERROR")).params[0]
            assert not mesh_of(ircd).links

    @pytest.mark.fault("D15")
    async def test_it_is_dialled_less_often(self, tmp_path: Path) -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            await reader.readline()
            writer.write(f"PASS {SECRET}\r\nSERVER thor 1 :x\r\nLINK 9 log epoch 9\r\n".encode())
            await reader.read()
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        link = LinkConfig(name="thor", secret=SECRET, address=f"127.0.0.1:{port}")
        async with server, spark(tmp_path, link) as ircd:
            dialler = mesh_of(ircd).dialler
            await until(lambda: "Version 9" in dialler.problems.get("thor", ""))
            await until(lambda: dialler._calls["thor"].backoff.pause >= 300)


async def test_who_dials_and_says_nothing_is_dropped(tmp_path: Path) -> None:
    federation = Federation(ping=0.1, timeout=0.3)
    async with spark(tmp_path, federation=federation) as ircd, raw_peer(ircd) as peer:
        peer.greet()
        await peer.expect("LINK")
        assert (await peer.expect("ERROR")).params[0]
        assert not mesh_of(ircd).links and not mesh_of(ircd).greeters
