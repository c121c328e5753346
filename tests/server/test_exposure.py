"""What other machines can reach, and what they have to show (decision 3)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from culture.config.listen_policy import WebSocket
from culture.config.model import Flood, Listen, Rate
from culture.protocol.vocabulary import Exit
from culture.server.errors import StartError
from culture.server.ircd import IRCd
from tests.cli.shell import Shell
from tests.support.client import Client, connected
from tests.support.elsewhere import Elsewhere, elsewhere
from tests.support.people import PASSWORD, accounts_of, authenticate, come_in, mechanisms, plain
from tests.support.servers import config_for, serving
from tests.support.tls import client_context, made
from tests.support.waiting import PATIENCE
from tests.support.websocket import ORIGIN, TEXT, frame, request


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Elsewhere]:
    with elsewhere(monkeypatch) as address:
        yield address


@asynccontextmanager
async def serving_both(folder: Path, there: Elsewhere, trusted: bool = False) -> AsyncIterator[IRCd]:
    """A server with the account ori. Ports: loopback, elsewhere with TLS, and where that is trusted, without."""
    accounts = accounts_of(folder, "ori")
    tls, _ = made(folder, "spark")
    listen = [Listen(port=0), Listen(host=there.host, port=0, tls=tls)]
    if trusted:
        listen.append(Listen(host=there.host, port=0))
    unlimited = Flood(loopback=Rate(rate=0.0), clients=Rate(rate=0.0))
    async with serving(
        folder, listen=tuple(listen), trusted_network=trusted, accounts_file=accounts.path, flood=unlimited
    ) as ircd:
        yield ircd


@pytest.mark.fault("C1")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_without_accounts_nobody_from_elsewhere_could_log_in(tmp_path: Path, host: str) -> None:
    """C1: refused before anything listens; an account that was revoked is none."""
    tls, _ = made(tmp_path, "spark")
    store = accounts_of(tmp_path)
    config = config_for(tmp_path, listen=(Listen(host=host, port=0, tls=tls),), accounts_file=store.path)
    with pytest.raises(StartError, match=r"can be reached from other machines.*culture account add"):
        IRCd(config)
    store = accounts_of(tmp_path, "ori")
    store.revoke("ori")
    with pytest.raises(StartError, match="there are no accounts"):
        IRCd(config)


@pytest.mark.fault("C1")
async def test_a_trusted_network_needs_neither_and_is_logged(
    tmp_path: Path, there: Elsewhere, caplog: pytest.LogCaptureFixture
) -> None:
    """C1: `trusted_network: true` waives TLS and logins."""
    if not there.is_real:
        pytest.skip("only root can have a network of its own")
    listen = (Listen(host=there.host, port=0),)
    async with serving(tmp_path, listen=listen, trusted_network=True) as ircd, connected(ircd.port, there.host) as ada:
        assert f"trusted_network: {there.host} can be reached without a login" in caplog.text
        await ada.register("spark-ada")


@pytest.mark.fault("C1")
async def test_the_command_refuses_and_says_what_to_do(tmp_path: Path, there: Elsewhere) -> None:
    """C1: exit code 78 without TLS, 1 without accounts; a trusted network is printed at the start."""
    if not there.is_real:
        pytest.skip("only root can have a network of its own")
    shell = Shell(tmp_path)
    start = ("server", "start", "--foreground")
    try:
        shell.write(f"name: spark\nlisten: [{{host: {there.host}, port: 0}}]\n")
        refused = await shell.run(*start)
        assert refused.code == Exit.WRONG_CONFIGURATION and "culture server cert" in refused.err
        await shell.run("server", "cert", "--name", "spark")
        tls = f"{{certificate: {shell.home}/tls/spark.pem, key: {shell.home}/tls/spark.key}}"
        shell.write(f"name: spark\nlisten: [{{host: {there.host}, port: 0, tls: {tls}}}]\n")
        refused = await shell.run(*start)
        assert refused.code == Exit.FAILED and "culture account add" in refused.err and "Traceback" not in refused.err
        shell.write(f"name: spark\ntrusted_network: true\nlisten: [{{host: {there.host}, port: 0}}]\n")
        process = await shell.spawn(*start)
        assert f"trusted_network: {there.host} can be reached without a login" in await process.until("listens on")
    finally:
        await shell.close()


async def no_entrance(client: Client) -> str:
    """What somebody is told who registers without a login, and is not let in."""
    client.send("NICK spark-ada")
    client.send("USER ada 0 * :Ada")
    said = await client.ended()
    assert [each.verb for each in said] == ["464", "ERROR"]
    return said[0].params[-1]


@pytest.mark.fault("C1")
async def test_from_elsewhere_one_has_to_log_in(tmp_path: Path, there: Elsewhere) -> None:
    """C1, decision 3: presence is trusted on loopback alone."""
    async with serving_both(tmp_path, there) as ircd:
        async with connected(ircd.ports[1], there.host, client_context()) as ada:
            assert "you come from another machine" in await no_entrance(ada)
        async with connected(ircd.ports[1], there.host, client_context()) as ori:
            assert (await authenticate(ori, "PLAIN", plain("ori", PASSWORD))).verb == "903"
            await come_in(ori, "spark-ori")


@pytest.mark.fault("C5")
async def test_passwords_are_taken_only_where_nobody_listens(tmp_path: Path, there: Elsewhere) -> None:
    """C5: over TLS or on loopback PLAIN is offered, elsewhere it is not, nor taken, nor is PASS."""
    async with serving_both(tmp_path, there, trusted=True) as ircd:
        _, secure, open_port = ircd.ports
        if there.is_real:
            async with connected(ircd.port) as local:
                assert await mechanisms(local) == {"SCRAM-SHA-256", "PLAIN"}
        async with connected(secure, there.host, client_context()) as private:
            assert await mechanisms(private) == {"SCRAM-SHA-256", "PLAIN"}
        async with connected(open_port, there.host) as public:
            assert await mechanisms(public) == {"SCRAM-SHA-256"}
            assert (await authenticate(public, "PLAIN", plain("ori", PASSWORD))).verb == "904"
            assert next(each.params[1] for each in public.seen if each.verb == "908") == "SCRAM-SHA-256"
        async with connected(open_port, there.host) as public:
            public.send(f"PASS ori:{PASSWORD}")
            said = await public.ended()
            assert [each.verb for each in said] == ["464", "ERROR"]
            assert said[0].params[-1] == "Passwords are taken over TLS only"


@pytest.mark.parametrize(("origin", "answer"), [(ORIGIN, b"464 "), ("https://evil.example", b"HTTP/1.1 403 ")])
async def test_a_websocket_is_not_trusted_for_being_on_loopback(tmp_path: Path, origin: str, answer: bytes) -> None:
    """Decision 3: the request may come from any page that somebody here looks at, so it takes a login besides."""
    listen = (Listen(port=0, websocket=WebSocket(origins=(ORIGIN,))),)
    accounts = accounts_of(tmp_path, "ori")
    async with serving(tmp_path, listen=listen, accounts_file=accounts.path) as ircd, connected(ircd.port) as page:
        page.send_raw(request(origin=origin))
        page.send_raw(frame(TEXT, b"NICK spark-page") + frame(TEXT, b"USER page 0 * :A Page"))
        async with asyncio.timeout(PATIENCE):
            assert answer in await page.reader.read()
        assert ircd.parts.network.users == {}
