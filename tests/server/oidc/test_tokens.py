"""Which tokens are good: those of this issuer, for us, for now, and nothing that only looks so."""

import hashlib
import hmac
import json
import string
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from culture.config.oidc import Oidc
from culture.server.auth.account_store import AccountStore
from culture.server.auth.credential_check import Done, LoginFailed
from culture.server.auth.oidc.tokens import IssuedTokens
from tests.server.oidc.conftest import Trust
from tests.server.oidc.logins import logs_in
from tests.support.clock import Clock, ClockedRuntime
from tests.support.issuer import Issuer, armoured, new_key, public_of, signature, unsigned


@pytest.mark.parametrize(
    ("claims", "good"),
    [
        ({}, True),
        ({"iat": None, "nbf": None}, True),
        ({"exp": -59}, True),
        ({"exp": -60}, False),
        ({"exp": None}, False),
        ({"exp": "tomorrow"}, False),
        ({"exp": True}, False),
        ({"exp": 10**400}, False),
        ({"exp": -(10**12)}, False),
        ({"nbf": 60}, True),
        ({"nbf": 61}, False),
        ({"nbf": "now"}, False),
        ({"iat": 60}, True),
        ({"iat": 61}, False),
        ({"aud": "other"}, False),
        ({"aud": ["other", "cultures"]}, False),
        ({"aud": []}, False),
        ({"aud": None}, False),
        ({"aud": {"culture": 1}}, False),
        ({"iss": "https://issuer.example.org"}, False),
        ({"iss": None}, False),
        ({"iss": "{url}/"}, False),
        ({"sub": ""}, False),
        ({"sub": None}, False),
        ({"sub": 7}, False),
        ({"sub": "x" * 256}, False),
        ({"cnf": {"jkt": "x"}}, False),
    ],
    ids=str,
)
@pytest.mark.requirement("A21")
async def test_what_a_token_must_say(
    trusting: Trust, issuer: Issuer, clock: Clock, claims: dict[str, Any], good: bool
) -> None:
    """RFC 7519 §4.1; times are as far from now as clocks may differ, or a second further."""
    said = dict(claims)
    for name in ("exp", "nbf", "iat"):
        if type(said.get(name)) is int and abs(said[name]) < 1000:
            said[name] = clock.now + said[name]
    if isinstance(said.get("iss"), str):
        said["iss"] = said["iss"].format(url=issuer.url)
    async with trusting() as ircd:
        assert await logs_in(ircd, issuer.token(**said)) is good


def headers(issuer: Issuer, **said: object) -> str:
    return unsigned({"alg": "ES256", "kid": "first", "typ": "JWT", **said}, issuer.claims())


def forged(issuer: Issuer) -> dict[str, str]:
    """Tokens that nobody should take, by what is wrong with them."""
    good, other = issuer.token(), new_key()
    head, payload, sign = good.split(".")
    own = issuer.keys["first"]
    public = own.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    jwk = json.dumps(public_of(own)).encode()
    shared = headers(issuer, alg="HS256")
    none = headers(issuer, alg="none")
    claims = armoured(json.dumps({**issuer.claims(), "sub": "ada"}).encode())
    header_twice = b'{"alg": "none", "alg": "ES256", "kid": "first"}'
    twice = f'{json.dumps(issuer.claims())[:-1]}, "sub": "ada"}}'.encode()

    def signed(text: str) -> str:
        return f"{text}.{armoured(signature(own, text.encode()))}"

    rsa = new_key("RS256")
    return {
        "another's signature": issuer.token(key=other),
        "another algorithm than the key's": issuer.token(key=rsa),
        "no algorithm": f"{none}.",
        "no algorithm, capitals": f"{headers(issuer, alg='None')}.",
        "no algorithm, signed": signed(none),
        "the public key as a secret": f"{shared}.{armoured(hmac.digest(public, shared.encode(), hashlib.sha256))}",
        "the JWK as a secret": f"{shared}.{armoured(hmac.digest(jwk, shared.encode(), hashlib.sha256))}",
        "other claims": f"{head}.{claims}.{sign}",
        "no signature": f"{head}.{payload}.",
        "half a signature": f"{head}.{payload}.{sign[:43]}",
        "zeros for a signature": f"{head}.{payload}.{armoured(bytes(64))}",
        "padding": f"{head}.{payload}.{sign}==",
        "standard base64": f"{head}.{payload}.{sign[:-1]}+",
        "four parts": f"{good}.{sign}",
        "five parts": f"{good}.{sign}.{sign}",
        "one part": "token",
        "no JSON": signed(f"{head}.{armoured(b'ori')}"),
        "a list": signed(f"{head}.{armoured(b'[]')}"),
        "an algorithm twice": signed(f"{armoured(header_twice)}.{payload}"),
        "a header in UTF-16": signed(f"{armoured(header_twice.decode().encode('utf-16'))}.{payload}"),
        "a claim twice": signed(f"{head}.{armoured(twice)}"),
        "nesting": signed(f"{head}.{armoured(b'[' * 5000)}"),
        "its own key": signed(headers(issuer, jwk=public_of(own), kid="mine")),
        "an address of keys": signed(headers(issuer, jku="http://127.0.0.1:1/", kid="mine")),
        "no kid": signed(headers(issuer, kid=None)),
        "a kid that is no text": signed(headers(issuer, kid=["first"])),
        "another kid": signed(headers(issuer, kid="second")),
        "crit": signed(headers(issuer, crit=["exp"])),
        "crit that PyJWT knows": signed(headers(issuer, crit=["b64"], b64=True)),
        "a payload that is elsewhere": signed(headers(issuer, b64=False)),
        "another kind of token": signed(headers(issuer, typ="logout+jwt")),
        "an algorithm that is no text": signed(headers(issuer, alg=["ES256"])),
    }


@pytest.mark.requirement("A21")
async def test_no_forged_token_logs_in(trusting: Trust, issuer: Issuer) -> None:
    async with trusting() as ircd:
        taken = [what for what, token in forged(issuer).items() if await logs_in(ircd, token)]
        assert taken == []
        assert await logs_in(ircd, issuer.token())
        assert [account.name for account in ircd.parts.accounts.all()] == ["ori"]


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[IssuedTokens, str]]:
    """What checks tokens, and one that is good."""
    clock = Clock()
    with Issuer(clock.now) as issuer:
        accounts = AccountStore(tmp_path_factory.mktemp("accounts") / "accounts.json", "spark")
        yield (
            IssuedTokens(Oidc.model_validate(issuer.settings()), accounts, runtime=ClockedRuntime(clock)),
            issuer.token(),
        )


@given(place=st.integers(min_value=0), letter=st.sampled_from(string.ascii_letters + string.digits + "-_.=+/ é\0"))
def test_a_good_token_cannot_be_changed(tokens: tuple[IssuedTokens, str], place: int, letter: str) -> None:
    checker, good = tokens
    place %= len(good)
    changed = good[:place] + letter + good[place + 1 :]
    assert isinstance(checker.check(changed, ""), Done) is (changed == good)


@given(st.text(max_size=200) | st.lists(st.binary(max_size=40).map(armoured), max_size=4).map(".".join))
def test_garbage_only_ever_fails(tokens: tuple[IssuedTokens, str], text: str) -> None:
    assert isinstance(tokens[0].check(text, ""), LoginFailed)


async def test_a_token_may_be_shown_again_until_it_expires(trusting: Trust, issuer: Issuer, clock: Clock) -> None:
    async with trusting() as ircd:
        token = issuer.token()
        assert await logs_in(ircd, token) and await logs_in(ircd, token)
        clock.now += 300 + 60
        assert not await logs_in(ircd, token)
