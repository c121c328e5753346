"""The issuer's keys: found, remembered, changed, and what happens while the issuer does not answer."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from culture.config.oidc import Oidc
from culture.server.auth.oidc.issuer import LONGEST, PAUSE, IssuerUnreachable, Jwks, fetch, read_keys
from tests.server.oidc.conftest import Trust
from tests.server.oidc.logins import logs_in
from tests.support.clock import Clock, ClockedRuntime
from tests.support.issuer import Issuer, armoured, new_key, public_of
from tests.support.tls import made
from tests.support.waiting import PATIENCE

DISCOVERY = "/.well-known/openid-configuration"


async def test_the_keys_are_read_once(trusting: Trust, issuer: Issuer) -> None:
    async with trusting() as ircd:
        assert issuer.asked == []
        for name in ("ori", "ada", "ori"):
            assert await logs_in(ircd, issuer.token(name))
    assert issuer.asked == [DISCOVERY, "/keys"]


async def test_an_address_of_keys_needs_no_discovery(trusting: Trust, issuer: Issuer) -> None:
    async with trusting({"jwks_url": f"{issuer.url}/keys"}) as ircd:
        assert await logs_in(ircd, issuer.token())
    assert issuer.asked == ["/keys"]


async def test_a_new_key_is_taken_up(trusting: Trust, issuer: Issuer, clock: Clock) -> None:
    """Within the pause that protects the issuer; a key that is gone is gone with the next look."""
    async with trusting() as ircd:
        old = issuer.token()
        assert await logs_in(ircd, old)
        issuer.keys = {"second": new_key("EdDSA")}
        assert not await logs_in(ircd, issuer.token(kid="second"))
        clock.now += PAUSE
        assert await logs_in(ircd, issuer.token(kid="second"))
        assert not await logs_in(ircd, old)


async def test_unknown_keys_do_not_bother_the_issuer(trusting: Trust, issuer: Issuer, clock: Clock) -> None:
    async with trusting() as ircd:
        for number in range(10):
            assert not await logs_in(ircd, issuer.token(kid=f"k{number}", key=new_key()))
        assert issuer.asked == [DISCOVERY, "/keys"]
        clock.now += PAUSE
        for number in range(10):
            assert not await logs_in(ircd, issuer.token(kid=f"k{number}", key=new_key()))
        assert issuer.asked == [DISCOVERY, "/keys"] * 2


async def test_the_keys_are_asked_for_again_after_a_while(trusting: Trust, issuer: Issuer, clock: Clock) -> None:
    async with trusting({"refresh": "10m"}) as ircd:
        assert await logs_in(ircd, issuer.token())
        clock.now += 599
        assert await logs_in(ircd, issuer.token(exp=clock.now + 60))
        assert len(issuer.asked) == 2
        clock.now += 1
        assert await logs_in(ircd, issuer.token(exp=clock.now + 60))
        assert len(issuer.asked) == 4


async def test_known_keys_stay_good_while_the_issuer_is_down(
    trusting: Trust, issuer: Issuer, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """For a day; a new key is refused, and the log says why."""
    async with trusting() as ircd:
        assert await logs_in(ircd, issuer.token())
        issuer.stop()
        issuer.keys["second"] = new_key()
        clock.now += 7200
        assert await logs_in(ircd, issuer.token(exp=clock.now + 60))
        assert not await logs_in(ircd, issuer.token(kid="second", exp=clock.now + 60))
        assert f"the keys of {issuer.url} could not be read" in caplog.text
        clock.now += LONGEST
        assert not await logs_in(ircd, issuer.token(exp=clock.now + 60))


async def test_an_issuer_that_was_down_at_first(trusting: Trust, issuer: Issuer, clock: Clock) -> None:
    async with trusting() as ircd:
        issuer.answers[DISCOVERY] = (503, {}, b"")
        assert not await logs_in(ircd, issuer.token())
        issuer.answers.clear()
        clock.now += PAUSE
        assert await logs_in(ircd, issuer.token())


async def test_who_has_a_key_does_not_wait_for_the_issuer(trusting: Trust, issuer: Issuer, clock: Clock) -> None:
    async with trusting({"timeout": 60.0}) as ircd:
        assert await logs_in(ircd, issuer.token())
        issuer.may_answer.clear()
        issuer.was_asked.clear()
        clock.now += PAUSE
        unknown = asyncio.create_task(logs_in(ircd, issuer.token(kid="second", key=new_key())))
        assert await asyncio.to_thread(issuer.was_asked.wait, PATIENCE)
        assert await logs_in(ircd, issuer.token())
        assert not unknown.done()
        issuer.may_answer.set()
        assert not await unknown


def unreachable(issuer: Issuer, clock: Clock, path: str, status: int, body: object, **headers: str) -> None:
    """With this answer in place of the truth there is no key."""
    said = body if isinstance(body, bytes) else json.dumps(body).encode()
    issuer.answers[path] = (status, headers, said)
    assert Jwks(Oidc.model_validate(issuer.settings()), runtime=ClockedRuntime(clock)).key("first") is None
    issuer.answers.clear()
    assert Jwks(Oidc.model_validate(issuer.settings()), runtime=ClockedRuntime(clock)).key("first") is not None


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        (DISCOVERY, 404, {}),
        (DISCOVERY, 200, []),
        (DISCOVERY, 200, b"<html>"),
        (DISCOVERY, 200, b'{"a":' * 5000),
        (DISCOVERY, 200, {"jwks_uri": "{url}/keys"}),
        (DISCOVERY, 200, {"issuer": "{url}/", "jwks_uri": "{url}/keys"}),
        (DISCOVERY, 200, {"issuer": "{url}"}),
        (DISCOVERY, 200, {"issuer": "{url}", "jwks_uri": "file:///etc/passwd"}),
        (DISCOVERY, 200, {"issuer": "{url}", "jwks_uri": "http://192.0.2.1/keys"}),
        ("/keys", 500, {"keys": []}),
        ("/keys", 200, {"keys": {}}),
        ("/keys", 200, {}),
        ("/keys", 200, b'{"keys":[],"x":"' + b"x" * (300 << 10) + b'"}'),
        ("/keys", 200, b"\xff"),
    ],
)
def test_what_an_issuer_may_not_say(issuer: Issuer, clock: Clock, path: str, status: int, body: object) -> None:
    if isinstance(body, dict):
        body = {key: text.format(url=issuer.url) if isinstance(text, str) else text for key, text in body.items()}
    unreachable(issuer, clock, path, status, body)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirections_are_not_followed(issuer: Issuer, clock: Clock, status: int) -> None:
    with Issuer(clock.now) as other:
        unreachable(issuer, clock, "/keys", status, b"", Location=f"{other.url}/keys")
        assert other.asked == []


def test_an_issuer_with_tls_leads_to_no_keys_without(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate is checked as well: it is trusted because the system's list has it."""
    tls, _ = made(tmp_path, "127.0.0.1")
    with Issuer(clock.now, tls) as issuer:
        settings = Oidc.model_validate(issuer.settings())
        assert Jwks(settings, runtime=ClockedRuntime(clock)).key("first") is None
        assert issuer.asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(tls.certificate))
        assert Jwks(settings, runtime=ClockedRuntime(clock)).key("first") is not None
        said = {"issuer": issuer.url, "jwks_uri": issuer.url.replace("https", "http") + "/keys"}
        issuer.answers[DISCOVERY] = (200, {}, json.dumps(said).encode())
        assert Jwks(settings, runtime=ClockedRuntime(clock)).key("first") is None


def test_an_issuer_that_never_answers_is_not_waited_for(issuer: Issuer) -> None:
    issuer.may_answer.clear()
    with pytest.raises(IssuerUnreachable, match="too long"):
        fetch(f"{issuer.url}/keys", time.monotonic() + 0.05)
    issuer.may_answer.set()
    assert fetch(f"{issuer.url}/keys", time.monotonic() + PATIENCE)["keys"]
    with pytest.raises(IssuerUnreachable, match="too long"):
        fetch(f"{issuer.url}/keys", time.monotonic() - 1)


def test_an_issuer_that_answers_for_ever_is_not_waited_for() -> None:
    """A byte now and then: each comes in time, the end never does."""
    over = threading.Event()

    def drip(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client, contextlib.suppress(OSError):
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while not over.wait(0.005):
                client.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        with pytest.raises(IssuerUnreachable):
            fetch(f"http://127.0.0.1:{listener.getsockname()[1]}/", time.monotonic() + 0.1)
        over.set()
        thread.join()


def test_keys_that_are_of_no_use_are_passed_over() -> None:
    """RFC 7517 §5; a key is for one algorithm and for signatures."""
    good = {alg: public_of(new_key(alg)) for alg in ("RS256", "ES256", "EdDSA")}
    weak = public_of(rsa.generate_private_key(65537, 1024))
    useless: list[object] = [
        "key",
        good["RS256"],
        {**good["RS256"], "kid": 7},
        {**good["RS256"], "kid": "enc", "use": "enc"},
        {**good["RS256"], "kid": "ops", "key_ops": ["encrypt"]},
        {**good["RS256"], "kid": "alg", "alg": "PS256"},
        {**good["ES256"], "kid": "curve", "crv": "P-384"},
        {**good["ES256"], "kid": "off", "x": good["ES256"]["y"]},
        {**good["EdDSA"], "kid": "x", "x": "AAAA"},
        {**good["EdDSA"], "kid": "crv", "crv": "X25519"},
        {**weak, "kid": "weak"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "oct"},
        {"kty": "RSA", "kid": "bare"},
        {**good["RS256"], "kid": "number", "n": 7},
        {**good["ES256"], "kid": "short", "x": "AAAA"},
        {**good["ES256"], "kid": "no point", "y": armoured(bytes(32))},
        {"kid": "bare"},
    ]
    assert read_keys({"keys": useless}) == {}
    right: list[object] = [{**key, "kid": alg, "alg": alg, "key_ops": ["verify"]} for alg, key in good.items()]
    again: list[object] = [{**public_of(new_key()), "kid": "ES256"}]
    keys = read_keys({"keys": useless + right + again})
    assert {kid: key.algorithm_name for kid, key in keys.items()} == {alg: alg for alg in good}
    public = keys["ES256"].key
    assert isinstance(public, EllipticCurvePublicKey)
    assert armoured(public.public_numbers().x.to_bytes(32, "big")) == good["ES256"]["x"]


def test_the_private_half_of_a_published_key_is_not_read() -> None:
    public = public_of(new_key("EdDSA"))
    keys = read_keys({"keys": [{**public, "kid": "leaked", "d": armoured(bytes(32))}]})
    assert isinstance(keys["leaked"].key, Ed25519PublicKey)
