"""Logging in with a token: a real issuer, a real server, a client on a socket."""

import asyncio
import base64
import logging
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from culture.config.model import Listen
from culture.config.oidc import Oidc
from culture.server.errors import StartError
from culture.server.ircd import IRCd
from tests.server.oidc.conftest import Trust
from tests.server.oidc.logins import logs_in, reason, show
from tests.support.client import connected
from tests.support.clock import Clock
from tests.support.elsewhere import elsewhere
from tests.support.issuer import Issuer, bearer, new_key
from tests.support.people import PASSWORD, accounts_of, authenticate, come_in, mechanisms, plain
from tests.support.servers import Serve, config_for
from tests.support.tls import client_context, made
from tests.support.waiting import PATIENCE


@pytest.mark.requirement("A21")
@pytest.mark.fault("C5")
async def test_a_token_logs_in_over_tls(tmp_path: Path, trusting: Trust, issuer: Issuer) -> None:
    """RFC 7628 §3.1; the account is the token's, and so is the nick of its name."""
    tls, _ = made(tmp_path, "spark")
    async with trusting(listen=(Listen(port=0, tls=tls),)) as ircd:
        async with connected(ircd.port, tls=client_context()) as ori:
            assert "OAUTHBEARER" in await mechanisms(ori)
            assert await show(ori, *bearer(issuer.token("ori"))) == "903"
            await come_in(ori, "spark-ori")
            whois = {each.verb: each.params for each in await ori.ask("WHOIS spark-ori")}
            assert whois["330"][2] == "ori"
            ori.send("QUIT")
            await ori.ended()
        async with connected(ircd.port, tls=client_context()) as thief:
            thief.send("NICK spark-ori")
            thief.send("USER u 0 * :U")
            assert "belongs to the account ori" in (await thief.expect("433")).params[-1]


@pytest.mark.fault("C5")
@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_every_algorithm_works_unless_it_is_not_allowed(trusting: Trust, issuer: Issuer, algorithm: str) -> None:
    issuer.keys["first"] = new_key(algorithm)
    async with trusting() as ircd:
        assert await logs_in(ircd, issuer.token(typ="at+jwt", aud=["other", "culture"]))
    others = [each for each in ("RS256", "ES256", "EdDSA") if each != algorithm]
    async with trusting({"algorithms": tuple(others)}) as ircd:
        assert not await logs_in(ircd, issuer.token())


@pytest.mark.fault("C5")
async def test_tokens_are_taken_only_where_nobody_listens(
    tmp_path: Path, trusting: Trust, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C5: over TLS or on loopback, elsewhere it is neither offered nor taken."""
    tls, _ = made(tmp_path, "spark")
    with elsewhere(monkeypatch) as there:
        listen = (Listen(host=there.host, port=0), Listen(host=there.host, port=0, tls=tls))
        async with trusting(listen=listen, trusted_network=True) as ircd:
            async with connected(ircd.ports[1], there.host, client_context()) as private:
                assert "OAUTHBEARER" in await mechanisms(private)
            async with connected(ircd.port, there.host) as public:
                assert await mechanisms(public) == {"SCRAM-SHA-256"}
                assert (await authenticate(public, "OAUTHBEARER", bearer("a.b.c")[0])).verb == "904"
                assert next(each.params[1] for each in public.seen if each.verb == "908") == "SCRAM-SHA-256"


async def test_without_an_issuer_it_is_not_offered(serve: Serve, issuer: Issuer) -> None:
    async with serve() as ircd, connected(ircd.port) as client:
        assert await mechanisms(client) == {"SCRAM-SHA-256", "PLAIN"}
        assert (await authenticate(client, "OAUTHBEARER", "AQ==")).verb == "904"


async def test_the_client_hears_why_as_the_rfc_has_it(trusting: Trust, issuer: Issuer, clock: Clock) -> None:
    """RFC 7628 §3.2.2, §3.2.3: JSON, an empty answer, then the failure; nothing of the reason, and it may try again."""
    async with trusting() as ircd, connected(ircd.port) as client:
        assert await show(client, *bearer(issuer.token(exp=clock.now - 100))) == "904"
        configuration = f"{issuer.url}/.well-known/openid-configuration"
        assert reason(client) == {"status": "invalid_token", "openid-configuration": configuration}
        assert await show(client, *bearer(issuer.token())) == "903"


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=\x01\x01",
        b"n,,\x01auth=Basic b3JpOm9yaQ==\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer a\x01auth=Bearer b\x01\x01",
        b"n,,\x01auth=Bearer a\x01",
        b"p=tls-unique,,\x01auth=Bearer a\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
    ],
)
async def test_another_message_is_no_request(trusting: Trust, message: bytes) -> None:
    async with trusting() as ircd, connected(ircd.port) as client:
        assert await show(client, base64.b64encode(message).decode() or "+") == "904"
        assert reason(client)["status"] == "invalid_request"


async def test_who_gives_up_has_not_failed_twice(trusting: Trust, issuer: Issuer) -> None:
    async with trusting() as ircd, connected(ircd.port) as client:
        client.send("CAP REQ :sasl")
        client.send("AUTHENTICATE OAUTHBEARER")
        await client.expect("AUTHENTICATE", "+")
        client.send(f"AUTHENTICATE {bearer('a.b.c')[0]}")
        await client.expect("AUTHENTICATE")
        client.send("AUTHENTICATE *")
        await client.expect("906")
        assert await show(client, *bearer(issuer.token())) == "903"


async def test_who_may_be_meant(trusting: Trust, issuer: Issuer) -> None:
    """RFC 7628 §3.1: the name before the token is the account's, or none."""
    async with trusting() as ircd:
        assert await logs_in(ircd, issuer.token(), "ori")
        assert await logs_in(ircd, issuer.token(), "spark-Ori")
        assert not await logs_in(ircd, issuer.token(), "ada")
        assert not await logs_in(ircd, issuer.token(), "ori@example.org")


async def test_a_token_may_be_long_but_not_without_end(trusting: Trust, issuer: Issuer) -> None:
    async with trusting() as ircd:
        long = issuer.token(groups=["x" * 5700])
        assert 7000 < len(long) <= 8192
        assert await logs_in(ircd, long)
        assert not await logs_in(ircd, issuer.token(groups=["x" * 6100]))
        async with connected(ircd.port) as client:
            assert await show(client, *bearer(issuer.token(groups=["x" * 20_000]))[:31]) == "904"
            assert await client.sync() == []


@pytest.mark.fault("C3")
async def test_wrong_tokens_are_counted_once_each(trusting: Trust, issuer: Issuer) -> None:
    """C3: after as many as there may be, the right one has to wait."""
    wrong = issuer.token(aud="other")
    async with trusting(limits={"failed_logins": 3}) as ircd, connected(ircd.port) as client:
        for _ in range(3):
            assert await show(client, *bearer(wrong)) == "904"
        client.send("AUTHENTICATE OAUTHBEARER")
        assert "Too many failed logins" in (await client.expect("904")).params[-1]


@pytest.mark.fault("C10")
async def test_nothing_of_a_token_is_logged(trusting: Trust, issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    tokens = [
        issuer.token("secret-sub"),
        issuer.token("secret sub"),
        issuer.token("secret-sub", aud="secret-aud"),
        issuer.token("secret-sub", kid="secret-kid", key=new_key()),
        issuer.token("secret-sub", exp="secret-exp"),
    ]
    async with trusting() as ircd:
        assert [await logs_in(ircd, token) for token in tokens] == [True, False, False, False, False]
    assert caplog.text.count("a token was refused: ") == 4
    assert "secret-" not in caplog.text and "secret " not in caplog.text
    assert not any(part in caplog.text for token in tokens for part in token.split("."))


@pytest.mark.fault("C1")
async def test_an_issuer_is_a_way_to_log_in_from_elsewhere(tmp_path: Path, issuer: Issuer) -> None:
    """C1: beyond loopback a listener needs TLS and accounts or an issuer."""
    tls, _ = made(tmp_path, "spark")
    listen = (Listen(host="0.0.0.0", port=0, tls=tls),)
    with pytest.raises(StartError, match="oidc"):
        IRCd(config_for(tmp_path, listen=listen))
    oidc = Oidc.model_validate(issuer.settings())
    async with IRCd(config_for(tmp_path, listen=listen, oidc=oidc)).running() as ircd:
        assert ircd.port


async def test_passwords_work_beside_it(tmp_path: Path, trusting: Trust, issuer: Issuer) -> None:
    """An issuer that does not answer keeps nobody else waiting."""
    accounts_of(tmp_path, "ada")
    issuer.may_answer.clear()
    async with trusting({"timeout": 60.0}) as ircd, AsyncExitStack() as stack:
        crowd = [await stack.enter_async_context(connected(ircd.port)) for _ in range(6)]
        ada, *others = crowd
        waiting = [asyncio.create_task(show(client, *bearer(issuer.token()))) for client in others]
        assert await asyncio.to_thread(issuer.was_asked.wait, PATIENCE)
        assert (await authenticate(ada, "PLAIN", plain("ada", PASSWORD))).verb == "903"
        assert not any(each.done() for each in waiting)
        issuer.may_answer.set()
        assert set(await asyncio.gather(*waiting)) == {"903"}
