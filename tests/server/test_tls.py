"""TLS over real connections: who is let in, who is known by a certificate, whom a fault of somebody else touches."""

import asyncio
import hashlib
import signal
import ssl
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from culture.config.listen_policy import Tls
from culture.config.model import Listen
from culture.server.ircd import IRCd
from tests.cli.shell import Shell
from tests.support.client import Client, connected, registered
from tests.support.people import PASSWORD, accounts_of, authenticate, come_in, mechanisms, plain
from tests.support.servers import Serve, config_for
from tests.support.tls import client_context, made
from tests.support.waiting import PATIENCE

Files = dict[str, tuple[Tls, str]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Certificates of the server, of ori (out of date), and of somebody who calls himself ori too."""
    folder, other = tmp_path_factory.mktemp("tls"), tmp_path_factory.mktemp("other")
    return {
        "spark": made(folder, "spark"),
        "ori": made(folder, "ori", days=1, ago=9),
        "another": made(other, "ori"),
    }


def settings(folder: Path, files: Files) -> dict[str, Any]:
    """One port without TLS, one with it, and the account ori with a password and a certificate."""
    accounts = accounts_of(folder, "ori", certificate=files["ori"][1])
    return {"listen": (Listen(port=0), Listen(port=0, tls=files["spark"][0])), "accounts_file": accounts.path}


@pytest.fixture
async def ircd(tmp_path: Path, serve: Serve, files: Files) -> AsyncIterator[IRCd]:
    async with serve(**settings(tmp_path, files)) as running:
        yield running


def fingerprint(client: Client) -> str:
    """Of the certificate that the server showed."""
    return hashlib.sha256(client.writer.get_extra_info("ssl_object").getpeercert(True)).hexdigest()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_with_tls_is_a_client_like_any(ircd: IRCd, files: Files, version: ssl.TLSVersion) -> None:
    """RFC 7194; also for lines that take several records."""
    context = client_context()
    context.minimum_version = context.maximum_version = version
    async with connected(ircd.ports[1], tls=context) as ada, registered(ircd.port, "spark-guest") as guest:
        assert fingerprint(ada) == files["spark"][1]
        await ada.register("spark-ada", "message-tags")
        await ada.join("#general")
        await guest.join("#general")
        assert "671" in [each.verb for each in await guest.ask("WHOIS spark-ada")]
        assert "671" not in [each.verb for each in await ada.ask("WHOIS spark-guest")]
        for position in range(200):
            ada.send(f"PRIVMSG #general :{position} {'é🎉' * 60}")
        for position in range(200):
            await guest.expect("PRIVMSG", "#general", f"{position} {'é🎉' * 60}")
        guest.send(f"PRIVMSG #general :{'日本語' * 40}")
        await ada.expect("PRIVMSG", "#general", "日本語" * 40)
        ada.send("QUIT :bye")
        assert (await ada.ended())[-1].verb == "ERROR"
        await guest.expect("QUIT", "Quit: bye")


@pytest.mark.fault("C9")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
async def test_old_versions_are_refused(ircd: IRCd, version: ssl.TLSVersion) -> None:
    """C9, RFC 8996"""
    context = client_context()
    context.set_ciphers("ALL:@SECLEVEL=0")  # else the client itself would not try
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    with pytest.raises(ssl.SSLError, match=r"(?i)alert.protocol.version"):
        async with connected(ircd.ports[1], tls=context):
            pass


@pytest.mark.fault("C5", "C9")
async def test_a_certificate_logs_in(ircd: IRCd, files: Files) -> None:
    """C5, C9, RFC 4422 appendix A: the fingerprint decides, not the issuer nor the date."""
    async with connected(ircd.ports[1], tls=client_context(files["ori"][0])) as ori:
        assert await mechanisms(ori) == {"SCRAM-SHA-256", "PLAIN", "EXTERNAL"}
        assert (await authenticate(ori, "EXTERNAL", "+")).verb == "903"
        await come_in(ori, "spark-ori")
        assert ircd.parts.network.users["spark-ori"].account == "ori"


@pytest.mark.fault("C5", "C9")
async def test_another_certificate_does_not(ircd: IRCd, files: Files) -> None:
    """C9: whatever name it has; and without one EXTERNAL is not even offered."""
    async with connected(ircd.ports[1], tls=client_context(files["another"][0])) as other:
        assert (await authenticate(other, "EXTERNAL", "+")).verb == "904"
    async with connected(ircd.ports[1], tls=client_context()) as without:
        assert await mechanisms(without) == {"SCRAM-SHA-256", "PLAIN"}
        assert (await authenticate(without, "EXTERNAL", "+")).verb == "904"
        assert (await authenticate(without, "PLAIN", plain("ori", PASSWORD))).verb == "903"


@pytest.mark.parametrize(
    "said",
    [
        b"NICK spark-ori\r\nUSER ori 0 * :Ori\r\n",
        b"GET / HTTP/1.1\r\nHost: spark\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xff" * 600,
        b"\x00" * 4096,
    ],
)
async def test_what_is_not_tls_ends_its_own_connection_and_no_other(ircd: IRCd, said: bytes) -> None:
    """A failed handshake touches nobody else, and nothing of what was said is carried out."""
    async with connected(ircd.ports[1], tls=client_context()) as ada, connected(ircd.ports[1]) as wrong:
        await ada.register("spark-ada")
        wrong.send_raw(said)
        async with asyncio.timeout(PATIENCE):
            answer = await _rest(wrong)
        assert b"spark" not in answer
        assert [each.verb for each in await ada.ask("PRIVMSG spark-ada :still here")] == ["PRIVMSG"]
        assert set(ircd.parts.network.users) == {"spark-ada"}


async def test_a_handshake_that_takes_too_long_ends(serve: Serve, tmp_path: Path, files: Files) -> None:
    """A connection has to register in time, and the handshake is part of that: silent, or half done."""
    context = client_context()
    hello = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(*hello).do_handshake()
    half = hello[1].read()[:100]
    async with (
        serve(limits={"registration_timeout": 3.0}, **settings(tmp_path, files)) as ircd,
        registered(ircd.port, "spark-guest") as guest,
        connected(ircd.ports[1]) as silent,
        connected(ircd.ports[1]) as slow,
    ):
        slow.send_raw(half)
        async with asyncio.timeout(3.0 + PATIENCE):
            assert not any(await asyncio.gather(_rest(silent), _rest(slow)))
        assert await guest.sync() == []
        assert len(ircd.parts.sessions) == 1


async def _rest(client: Client) -> bytes:
    """Whatever comes until the end."""
    try:
        return await client.reader.read()
    except ConnectionResetError:
        return b""


async def test_a_new_certificate_is_for_new_connections(tmp_path: Path, serve: Serve, files: Files) -> None:
    """Read again by a reload; whoever is connected stays, with the old one."""
    own, before = made(tmp_path, "own")
    with_own = {**settings(tmp_path, files), "listen": (Listen(port=0, tls=own),)}
    async with serve(**with_own) as ircd, connected(ircd.port, tls=client_context()) as old:
        await old.register("spark-old")
        _, after = made(tmp_path, "own")
        ircd.rehash(config_for(tmp_path, **with_own))
        async with connected(ircd.port, tls=client_context()) as new:
            assert (fingerprint(old), fingerprint(new)) == (before, after)
            await new.register("spark-new")
            new.send("PRIVMSG spark-old :hello")
            await old.expect("PRIVMSG", "spark-old", "hello")


async def test_the_lines_for_the_certificate_keep_the_port(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for text, port in (("name: spark\nlisten: [{port: 7123}]\n", 7123), ("name: spark\nlisten: nonsense\n", 6667)):
        shell.write(text)
        made = await shell.run("server", "cert", "--name", "spark", "--force")
        assert f"listen:\n  - port: {port}\n  - host: " in made.out


async def test_a_signal_is_enough_for_a_new_certificate(tmp_path: Path) -> None:
    """docs/server/tls.md: SIGHUP to a real process; a certificate that cannot be used changes nothing."""
    shell = Shell(tmp_path)
    try:
        await shell.run("server", "cert", "--name", "spark")
        certificate = shell.home / "tls" / "spark.pem"
        tls = f"tls: {{certificate: {certificate}, key: {certificate.with_suffix('.key')}}}"
        shell.write(f"name: spark\nlisten: [{{port: 0, {tls}}}]\n")
        process, port = await shell.serve()
        async with connected(port, tls=client_context()) as old:
            await old.register("spark-old")
            assert (await shell.run("server", "cert", "--name", "spark", "--force")).code == 0
            process.signal(signal.SIGHUP)
            await process.until("configuration reloaded")
            async with connected(port, tls=client_context()) as new:
                assert fingerprint(new) != fingerprint(old)
                expected = fingerprint(new)
            certificate.write_text("nonsense")
            process.said = ""
            process.signal(signal.SIGHUP)
            assert "the certificate stays as it was" in await process.until("configuration reloaded")
            async with connected(port, tls=client_context()) as newer:
                assert fingerprint(newer) == expected
            await old.sync()
    finally:
        await shell.close()
